"""
Trains one step with little and with much memory for activations. Prints a JSON object per compute type: how many layers
were computed again, and whether the gradients are the same. `activations.py <folder of engines/torch> <folder for
files>`.
"""

import json
import os
import sys

sys.path.insert(0, sys.argv[1])
os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")

import torch  # noqa: E402
from petrel_torch import device  # noqa: E402
from petrel_torch.activations import SHARE  # noqa: E402
from petrel_torch.training import Training  # noqa: E402
from petrel_torch.trial import MODEL, Arrays, fill, place  # noqa: E402

TOKENS, SEQUENCES = 96, 3
# A mixture whose first layer is dense, beside the model of `petrel engine check`.
MIXTURE = {
    **MODEL,
    "architectures": ["Qwen3MoeForCausalLM"],
    "model_type": "qwen3_moe",
    "moe_intermediate_size": 128,
    "num_experts": 4,
    "num_experts_per_tok": 2,
    "mlp_only_layers": [0],
}


def gradients(role, free):
    fill(role)
    role.activations.free = lambda: free
    random = torch.Generator().manual_seed(2)
    tokens = torch.randint(MODEL["vocab_size"], (TOKENS,), generator=random, dtype=torch.int32)
    lane = {
        "tokens": place(tokens),
        "cuSeqlens": place(torch.arange(SEQUENCES + 1, dtype=torch.int32) * (TOKENS // SEQUENCES)),
        "positions": place(torch.arange(TOKENS - 1, dtype=torch.int32)),
        "targets": place(tokens[1:].clone()),
        "outputs": {"logProbs": place(torch.empty(TOKENS - 1))},
    }
    role.forward(
        {"temperature": 1.0, "wants": ["logProbs"], "keep": True, "base": False, "pass": 1, "lanes": [lane]}
    )
    role.backward({"pass": 1, "lanes": [{"logProbs": place(torch.full((TOKENS - 1,), -1 / TOKENS))}]})
    return role.activations.again, [piece.gradient.clone() for piece in role.state.pieces]


def main(folder):
    settings = {"device": "cpu", "rank": 0, "ranks": 1, "deterministic": True, "threads": 2, "seconds": 60}
    group = device.join({**settings, "rendezvous": os.path.join(folder, "rendezvous")})
    for model in (MODEL, MIXTURE):
        with open(os.path.join(folder, "config.json"), "w") as file:
            json.dump(model, file)
        for compute in ("fp32", "bf16"):
            role = Training(group, Arrays, {"folder": folder, "head": "tokens", "compute": compute, "trainable": True})
            kept, whole = gradients(role, 2**40)
            # Room for two and a half of the largest layer, and for none.
            others = [gradients(role, layers * role.activations.largest / SHARE) for layers in (2.5, 0)]
            equal = all(torch.equal(one, two) for _, made in others for one, two in zip(whole, made, strict=True))
            moved = all(bool(one.any()) for one in whole)
            again = [kept, *(count for count, _ in others)]
            print(
                json.dumps(
                    {"model": model["model_type"], "compute": compute, "again": again, "equal": equal, "moved": moved}
                ),
                flush=True,
            )


main(sys.argv[2])
