"""Makes the two small reward models of this folder: random weights, their scores by transformers, and their graphs.

    PETREL_PYTHON=env/bin/python; $PETREL_PYTHON tests/onnx-classifier/make.py
    for one in llama qwen2; do node cli/bin.mjs model onnx tests/onnx-classifier/$one --out /tmp/$one &&
        cp /tmp/$one/model.onnx tests/onnx-classifier/$one-onnx/; done

with the packages of models/onnx/requirements.txt. The vocabulary is that of examples/00-arithmetic-sft/base.
"""

import json
import shutil
from pathlib import Path

import torch
from transformers import LlamaConfig, LlamaForSequenceClassification, Qwen2Config, Qwen2ForSequenceClassification

here = Path(__file__).parent
base = here.parent.parent / "examples/00-arithmetic-sft/base"
sizes = dict(
    vocab_size=18,
    hidden_size=16,
    intermediate_size=32,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=64,
    pad_token_id=0,
    eos_token_id=1,
    bos_token_id=None,
    num_labels=1,
)
models = {
    "llama": lambda: LlamaForSequenceClassification(LlamaConfig(**sizes)),
    "qwen2": lambda: Qwen2ForSequenceClassification(Qwen2Config(**sizes)),
}
# Prompts with responses: one token, several lengths, pad tokens at the end, one inside.
sequences = [
    [6],
    [4, 12, 5, 14, 9, 1],
    [4, 12, 5, 14, 8, 1],
    [7, 13, 2, 1, 0, 0],
    [5, 0, 6, 1],
    [(3 + 7 * i * i) % 17 + 1 for i in range(40)],
]

for name, make in models.items():
    torch.manual_seed(11)
    model = make().eval()
    for parameter in model.parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=0.3)
    folder, graph = here / name, here / f"{name}-onnx"
    model.save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)
    shutil.copy(base / "tokenizer.json", folder)
    graph.mkdir(exist_ok=True)
    for file in ("config.json", "tokenizer.json"):
        shutil.copy(folder / file, graph)
    with torch.no_grad():
        scores = [model(torch.tensor([ids])).logits.item() for ids in sequences]
    (graph / "scores.json").write_text(json.dumps({"sequences": sequences, "scores": scores}) + "\n")
