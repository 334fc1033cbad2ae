"""
Stochastic rounding: to one of the two nearest values of bf16, with the mean that was given. `rounding.py <folder of
engines/torch> <seed>`.
"""

import sys

sys.path.insert(0, sys.argv[1])

import torch  # noqa: E402
from petrel_torch.optimizer import rounded  # noqa: E402

DRAWS = 20_000
random = torch.Generator().manual_seed(int(sys.argv[2]))
# Of all sizes, the subnormal ones included, and what bf16 has exactly.
exponents = torch.randint(-140, 120, (200,), generator=random)
values = torch.randn(200, generator=random) * 2.0**exponents
exact = values.to(torch.bfloat16).float()
noise = torch.randint(0, 1 << 16, (DRAWS, 200), generator=random, dtype=torch.int32)

below = (values.view(torch.int32) & ~0xFFFF).view(torch.float32)
above = ((values.view(torch.int32) & ~0xFFFF) + 0x10000).view(torch.float32)
found = rounded(values.expand(DRAWS, -1).contiguous(), noise)
assert bool(((found == below) | (found == above)).all())
assert torch.equal(found, found.to(torch.bfloat16).float())
share = (found == above).double().mean(0)
expected = (values.double() - below) / (above.double() - below)
assert bool(((share - expected).abs() <= 5 * (expected * (1 - expected) / DRAWS).sqrt() + 1e-9).all())
assert torch.equal(rounded(exact.expand(DRAWS, -1).contiguous(), noise), exact.expand(DRAWS, -1))
print("compared", found.numel())
