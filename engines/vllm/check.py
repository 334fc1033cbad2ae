"""
Tries what a run would do: samples, twice, in each compute type. Prints one JSON object per line.
`check.py <cpu|cuda> <threads> <folder for files>`.
"""

import json
import math
import os
import sys

here = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [here, os.path.join(here, "../torch")]

import torch  # noqa: E402
from devices import devices  # noqa: E402
from petrel_torch.device import alone  # noqa: E402
from petrel_torch.trial import MODEL, Arrays, sample  # noqa: E402
from petrel_vllm.sampling import Sampling  # noqa: E402
from safetensors.torch import save  # noqa: E402


def fill(role):
    """Weights that are the same each time, in the file from which it takes them."""
    random = torch.Generator().manual_seed(1)
    data = save({one["name"]: torch.randn(one["shape"], generator=random) * 0.02 for one in role.parameters})
    os.ftruncate(role.file.fd, len(data))
    os.pwrite(role.file.fd, data, 0)
    role.loaded({})


def main(kind, folder):
    with open(os.path.join(folder, "config.json"), "w") as file:
        json.dump(MODEL, file)
    group = alone({"device": kind})
    print(json.dumps({"devices": devices(kind)}), flush=True)
    for compute in ("fp32", "bf16"):
        role = Sampling(group, Arrays, {"folder": folder, "compute": compute})
        (first, _), (second, rate) = sample(role, fill), sample(role, fill)
        role.close({})
        result = {"compute": compute, "repeats": first == second, "finite": math.isfinite(rate)}
        print(json.dumps({**result, "sampledPerSecond": round(rate)}), flush=True)


main(sys.argv[1], sys.argv[3])
