"""Writes a sequence classifier of transformers as ONNX: export.py <folder> <new folder>. The last line of standard
output is JSON.

The graph takes `input_ids` and `attention_mask`, both int64 [batch, sequence] and padded on the right, and gives
`logits`, float32 [batch, 1]. {"refused": reason} says that the folder is no reward model; otherwise the JSON holds
token sequences with the scores that transformers gives them one by one, for a comparison with the written file.
"""

import json
import os
import sys
import warnings

warnings.filterwarnings("ignore")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
from transformers import AutoConfig, AutoModelForSequenceClassification

# Protobuf ends at 2 GiB; larger weights lie in a file beside the graph.
largest_inside = 1 << 30
opset = 20


class Scores(torch.nn.Module):
    def __init__(self, classifier):
        super().__init__()
        self.classifier = classifier

    def forward(self, input_ids, attention_mask):
        return self.classifier(input_ids=input_ids, attention_mask=attention_mask).logits


def refuse(reason):
    print(json.dumps({"refused": reason}))
    sys.exit(0)


def load(folder):
    config = AutoConfig.from_pretrained(folder)
    name = (config.architectures or ["no class"])[0]
    if not name.endswith("ForSequenceClassification"):
        refuse(f"a reward model is a sequence classifier, found {name}")
    if config.num_labels != 1:
        refuse(f"a reward model gives one score, found {config.num_labels} labels")
    if config.pad_token_id is None:
        refuse("config.json names no pad_token_id, and responses of different lengths are padded with it")
    model, report = AutoModelForSequenceClassification.from_pretrained(
        folder, config=config, dtype=torch.float32, attn_implementation="eager", output_loading_info=True
    )
    if report["missing_keys"]:
        refuse(f"the weights lack {', '.join(sorted(report['missing_keys']))}")
    model.config.use_cache = False
    return model.eval()


def sequences_for(vocab, pad, longest):
    """Fixed tokens, among them a sequence that ends with the pad token."""
    lengths = [n for n in (1, 2, 3, 7, 20, 61) if n <= longest]
    tokens = [[(17 + 31 * s + 7 * i * i) % vocab for i in range(n)] for s, n in enumerate(lengths)]
    whole = [[token if token != pad else (pad + 1) % vocab for token in one] for one in tokens]
    return whole + [whole[-1][:-1] + [pad]]


def export(model, path):
    pad = model.config.pad_token_id
    ids = torch.tensor(
        [[(3 + i) % 11 + (1 if (3 + i) % 11 >= pad else 0) for i in range(5)], [1 if pad != 1 else 2] * 3 + [pad] * 2]
    )
    mask = torch.tensor([[1] * 5, [1] * 3 + [0] * 2])
    shape = {0: torch.export.Dim("batch"), 1: torch.export.Dim("sequence")}
    program = torch.onnx.export(
        Scores(model),
        (ids, mask),
        input_names=["input_ids", "attention_mask"],
        output_names=["logits"],
        dynamic_shapes={"input_ids": shape, "attention_mask": shape},
        opset_version=opset,
        dynamo=True,
        verbose=False,
    )
    # Traces of the exporting program; they are most of a small file.
    for node in program.model.graph:
        node.metadata_props.clear()
        node.doc_string = None
    weights = sum(p.numel() * p.element_size() for p in model.parameters())
    program.save(path, external_data=weights > largest_inside)


def main(folder, out):
    model = load(folder)
    longest = getattr(model.config, "max_position_embeddings", None) or 64
    sequences = sequences_for(model.config.vocab_size, model.config.pad_token_id, longest)
    with torch.no_grad():
        scores = [
            float(model(torch.tensor([ids]), attention_mask=torch.ones(1, len(ids), dtype=torch.long)).logits)
            for ids in sequences
        ]
        export(model, os.path.join(out, "model.onnx"))
    print(
        json.dumps(
            {
                "class": type(model).__name__,
                "padToken": model.config.pad_token_id,
                "sequences": sequences,
                "scores": scores,
            }
        )
    )


main(*sys.argv[1:])
