"""Scores of a sequence classifier by transformers: score_hf.py <folder>, with a list of lists of token ids as JSON on
standard input.
"""

import json
import sys

import torch
from transformers import AutoModelForSequenceClassification

model, report = AutoModelForSequenceClassification.from_pretrained(
    sys.argv[1], dtype=torch.float32, output_loading_info=True
)
model.eval()
missing = sorted(report["missing_keys"]) + sorted(report["unexpected_keys"])
sequences = json.load(sys.stdin)
with torch.no_grad():
    one_by_one = [model(torch.tensor([ids])).logits[0].tolist() for ids in sequences]
    longest = max(map(len, sequences))
    pad = model.config.pad_token_id
    padded = torch.tensor([ids + [pad] * (longest - len(ids)) for ids in sequences])
    together = model(padded, attention_mask=(padded != pad).long()).logits.tolist()
json.dump(
    {
        "class": type(model).__name__,
        "labels": model.config.num_labels,
        "keys": missing,
        "scores": one_by_one,
        "together": together,
    },
    sys.stdout,
)
