"""
Trains one step of a mixture of experts on two ranks that divide it, with much memory for activations, with none, and
with none on one of them. Prints a JSON object per division: how many layers were computed again, and whether all
gradients of a rank have the same bits. `divided.py <folder of engines/torch> <folder for files>`.
"""

import json
import os
import sys

sys.path.insert(0, sys.argv[1])
os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")

import torch  # noqa: E402
import torch.multiprocessing  # noqa: E402
from petrel_torch import device  # noqa: E402
from petrel_torch.training import Training  # noqa: E402
from petrel_torch.trial import MODEL, Arrays, fill, place  # noqa: E402

LENGTHS = (40, 17, 30)
# Its first layer is dense; a layer has an expert that all tokens meet, too.
MIXTURE = {
    **MODEL,
    "architectures": ["Qwen2MoeForCausalLM"],
    "model_type": "qwen2_moe",
    "moe_intermediate_size": 128,
    "shared_expert_intermediate_size": 64,
    "num_experts": 4,
    "num_experts_per_tok": 2,
    "mlp_only_layers": [0],
}


def lane_of(seed):
    tokens = torch.randint(
        MODEL["vocab_size"], (sum(LENGTHS),), generator=torch.Generator().manual_seed(seed), dtype=torch.int32
    )
    return {
        "tokens": place(tokens),
        "cuSeqlens": place(torch.tensor([0, *LENGTHS], dtype=torch.int32).cumsum(0, dtype=torch.int32)),
        "positions": place(torch.arange(len(tokens) - 1, dtype=torch.int32)),
        "targets": place(tokens[1:].clone()),
        "outputs": {"logProbs": place(torch.empty(len(tokens) - 1))},
    }


def gradients(role, free):
    fill(role)
    role.activations.free = lambda: free
    lanes = [lane_of(seed) for seed in range(role.division.lanes)]
    given = {"temperature": 1.0, "wants": ["logProbs"], "keep": True, "base": False, "pass": 1}
    role.forward({**given, "lanes": lanes})
    count = sum(LENGTHS) - 1
    role.backward({"pass": 1, "lanes": [{"logProbs": place(torch.full((count,), -1 / count))} for _ in lanes]})
    return role.activations.again, [piece.gradient.clone() for piece in role.state.pieces]


def of_rank(rank, folder, division):
    settings = {"device": "cpu", "rank": rank, "ranks": 2, "deterministic": True, "threads": 1, "seconds": 60}
    rendezvous = os.path.join(folder, "rendezvous-" + "-".join(division))
    group = device.join({**settings, "rendezvous": rendezvous, "division": division})
    role = Training(group, Arrays, {"folder": folder, "head": "tokens", "compute": "fp32", "trainable": True})
    plenty = 2**40
    kept, whole = gradients(role, plenty)
    others = [gradients(role, free) for free in (0, 0 if rank == 0 else plenty)]
    equal = all(torch.equal(one, two) for _, made in others for one, two in zip(whole, made, strict=True))
    moved = any(bool(one.any()) for one in whole)
    line = {"rank": rank, "division": division, "again": [kept, *(count for count, _ in others)]}
    print(json.dumps({**line, "equal": equal, "moved": moved}), flush=True)


if __name__ == "__main__":
    with open(os.path.join(sys.argv[2], "config.json"), "w") as file:
        json.dump(MIXTURE, file)
    for division in ({"sequence": 2}, {"tensor": 2}, {"experts": 2}):
        torch.multiprocessing.spawn(of_rank, (sys.argv[2], division), nprocs=2)
