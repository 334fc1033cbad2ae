"""Loads a Hugging Face folder with transformers, as anyone would, and prints the log-prob of every token of some texts.

usage: check_hf.py FOLDER < {"texts": [[token, …], …]}      (ids, so that only the model is compared)
Prints one JSON object: {"about", "logProbs": [[…], …]}. The model runs in float64, so that all rounding that shows is petrel's.
"""
import json
import sys

import torch
import transformers

transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()
model = transformers.AutoModelForCausalLM.from_pretrained(sys.argv[1], dtype=torch.float64, local_files_only=True).eval()


@torch.inference_mode()
def log_probs(ids):
    row = torch.tensor([ids])
    logits = model(row).logits[0, :-1]
    return logits.log_softmax(-1).gather(-1, row[0, 1:, None]).squeeze(-1).tolist()


texts = json.load(sys.stdin)["texts"]
about = f"transformers {transformers.__version__}, torch {torch.__version__}, {type(model).__name__}"
print(json.dumps({"about": about, "logProbs": [log_probs(ids) for ids in texts]}))
