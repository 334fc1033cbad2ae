"""
Tries what a run would do: one fixed training step, twice from the same state, in each compute type, and samples. Prints
one JSON object per line. `check.py <cpu|cuda> <threads> <folder for files>`.
"""

import json
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")

import torch  # noqa: E402

from devices import devices  # noqa: E402
from petrel_torch import device  # noqa: E402
from petrel_torch.decoding import Decoding  # noqa: E402
from petrel_torch.training import Training  # noqa: E402
from petrel_torch.trial import MODEL, Arrays, fill, place, sample  # noqa: E402

TOKENS, SEQUENCES, STEPS = 1024, 4, 3


def train(role):
    """The weights after some steps, and seconds of the fastest one."""
    fill(role)
    random = torch.Generator().manual_seed(2)
    seconds = []
    for step in range(STEPS):
        tokens = torch.randint(MODEL["vocab_size"], (TOKENS,), generator=random, dtype=torch.int32)
        lane = {
            "tokens": place(tokens),
            "cuSeqlens": place(torch.arange(SEQUENCES + 1, dtype=torch.int32) * (TOKENS // SEQUENCES)),
            "positions": place(torch.arange(TOKENS - 1, dtype=torch.int32)),
            "targets": place(tokens[1:].clone()),
            "outputs": {"logProbs": place(torch.empty(TOKENS - 1))},
        }
        began = time.perf_counter()
        wants = {"temperature": 1.0, "wants": ["logProbs"], "keep": True, "base": False, "pass": step, "lanes": [lane]}
        role.forward(wants)
        gradient = torch.full((TOKENS - 1,), -1 / TOKENS)
        role.backward({"pass": step, "lanes": [{"logProbs": place(gradient)}]})
        adamw = {"lr": 1e-3, "beta1": 0.9, "beta2": 0.99, "eps": 1e-8, "weightDecay": 0.01, "maxGradNorm": 1.0}
        role.step(adamw)
        seconds.append(time.perf_counter() - began)
    return [piece.weights.clone() for piece in role.state.pieces], min(seconds)


def main(kind, threads, folder):
    with open(os.path.join(folder, "config.json"), "w") as file:
        json.dump(MODEL, file)
    group = device.join(
        {
            "device": kind,
            "rank": 0,
            "ranks": 1,
            "deterministic": True,
            "threads": threads,
            "rendezvous": os.path.join(folder, "rendezvous"),
            "seconds": 60,
        }
    )
    print(json.dumps({"devices": devices(kind)}), flush=True)
    for compute in ("fp32", "bf16"):
        opened = {"folder": folder, "head": "tokens", "compute": compute}
        role = Training(group, Arrays, {**opened, "trainable": True})
        (first, seconds), (second, _) = train(role), train(role)
        repeats = all(torch.equal(one, other) for one, other in zip(first, second))
        finite = all(bool(one.isfinite().all()) for one in first)
        _, rate = sample(Decoding(group, Arrays, opened))
        print(
            json.dumps(
                {
                    "compute": compute,
                    "repeats": repeats,
                    "finite": finite,
                    "trainedPerSecond": round(TOKENS / seconds),
                    "sampledPerSecond": round(rate),
                }
            ),
            flush=True,
        )


main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
