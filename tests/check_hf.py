"""Loads Hugging Face folders with transformers, as anyone would, and prints the log-prob of every token of some texts.

usage: check_hf.py FOLDER < {"texts": [[token, …], …]}            (ids, so that only the model is compared)
       check_hf.py --make PARENT < {"texts": [[token, …], …]}     (makes random models of odd shapes, a folder each)

Prints one JSON object per folder: {"about", "folder", "logProbs": [[…], …], "bf16": [[…], …]}. logProbs are of the
model in float64, so that all rounding that shows is petrel's; bf16 are of its fp32 weights under torch's autocast to
bfloat16.
"""
import json
import os
import sys

import torch
import transformers

transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()

# Six query and three key heads of 24, an ffn that no vector width divides, one layer, a window shorter than the texts.
ODD = dict(
    hidden_size=144, intermediate_size=202, num_hidden_layers=1, num_attention_heads=6, num_key_value_heads=3,
    vocab_size=301, max_position_embeddings=256, initializer_range=0.15, bos_token_id=1, eos_token_id=2, pad_token_id=0,
)
LLAMA3 = dict(
    rope_type="llama3", rope_theta=50_000.0, factor=4.0, low_freq_factor=1.0, high_freq_factor=4.0,
    original_max_position_embeddings=64,
)
FAMILIES = {
    "llama": (transformers.LlamaConfig, dict(head_dim=24)),
    "llama-bias": (transformers.LlamaConfig, dict(attention_bias=True, mlp_bias=True, tie_word_embeddings=True)),
    "llama-scaled": (transformers.LlamaConfig, dict(rope_parameters=LLAMA3, num_hidden_layers=3)),
    "llama-wide-heads": (transformers.LlamaConfig, dict(head_dim=40, num_key_value_heads=1)),
    "qwen2": (transformers.Qwen2Config, dict()),
    "qwen2-window": (
        transformers.Qwen2Config,
        dict(use_sliding_window=True, sliding_window=7, max_window_layers=1, num_hidden_layers=3),
    ),
    "qwen3": (transformers.Qwen3Config, dict(head_dim=24, tie_word_embeddings=True)),
    "mistral": (transformers.MistralConfig, dict(head_dim=24, sliding_window=7)),
    "gemma2": (
        transformers.Gemma2Config,
        dict(head_dim=24, sliding_window=7, num_hidden_layers=3, query_pre_attn_scalar=36),
    ),
    "phi3": (transformers.Phi3Config, dict(sliding_window=7, original_max_position_embeddings=256)),
}


def load(folder, dtype):
    return transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, local_files_only=True).eval()


@torch.inference_mode()
def log_probs(model, ids):
    row = torch.tensor([ids])
    logits = model(row).logits[0, :-1].double()
    return logits.log_softmax(-1).gather(-1, row[0, 1:, None]).squeeze(-1).tolist()


def in_older_form(folder):
    """config.json as transformers 4 wrote it: rope_theta and rope_scaling."""
    path = os.path.join(folder, "config.json")
    with open(path, encoding="utf8") as file:
        config = json.load(file)
    rope = config.pop("rope_parameters", None)
    if rope is not None:
        config["rope_theta"] = rope.pop("rope_theta")
        config["rope_scaling"] = None if rope.get("rope_type", "default") == "default" else rope
    with open(path, "w", encoding="utf8") as file:
        json.dump(config, file, indent=2)


def make(parent):
    for number, (name, (config, changes)) in enumerate(FAMILIES.items()):
        torch.manual_seed(number)
        model = transformers.AutoModelForCausalLM.from_config(config(**{**ODD, **changes})).float()
        for parameter in model.parameters():  # norms and biases too
            parameter.data += 0.1 * torch.randn_like(parameter)
        model.tie_weights()
        for form in ("", "-older"):
            folder = os.path.join(parent, name + form)
            model.save_pretrained(folder)
            if form:
                in_older_form(folder)
            yield folder


texts = json.load(sys.stdin)["texts"]
for folder in make(sys.argv[2]) if sys.argv[1] == "--make" else sys.argv[1:]:
    exact, rounded = load(folder, torch.float64), load(folder, torch.float32)
    answer = {
        "about": f"transformers {transformers.__version__}, torch {torch.__version__}, {type(exact).__name__}",
        "folder": folder,
        "logProbs": [log_probs(exact, ids) for ids in texts],
    }
    with torch.autocast("cpu", torch.bfloat16):
        answer["bf16"] = [log_probs(rounded, ids) for ids in texts]
    print(json.dumps(answer), flush=True)
