"""
The gradients of the head's input and weight in one chunk, in two and in many, for losses of log-probs, of entropies
and of both. Prints a JSON object: its largest relative error by
compute type, beside autograd's in fp64, and the rows of a chunk by vocabulary. `head.py <folder of engines/torch>`.
"""

import json
import sys
from types import SimpleNamespace

sys.path.insert(0, sys.argv[1])

import torch  # noqa: E402
from petrel_torch import head  # noqa: E402

ROWS, WORDS, WIDTH = 600, 50, 16


# Weights of log-probs and of entropies in a loss.
LOSSES = [(1, 0.5), (1, 0), (0, 0.5)]


def loss_of(log_probs, entropies, weights):
    return sum(weight * one.sum() for weight, one in zip(weights, (log_probs, entropies), strict=True) if weight != 0)


def gradients(hidden, weight, targets, temperature, weights):
    outputs = head.HeadOutputs.apply(
        hidden, weight, None, targets, temperature, head.LogitForm(), frozenset({"logProbs", "entropy"}), None
    )
    return torch.autograd.grad(loss_of(*outputs[:2], weights), (hidden, weight))


def expected(hidden, weight, targets, temperature, weights):
    hidden, weight = (one.detach().double().requires_grad_() for one in (hidden, weight))
    log_p = torch.log_softmax(hidden @ weight.T / temperature, -1)
    outputs = log_p.gather(1, targets[:, None]).squeeze(1), -(log_p.exp() * log_p).sum(-1)
    return torch.autograd.grad(loss_of(*outputs, weights), (hidden, weight))


def errors(dtype, rows):
    head.MOST["cpu"] = rows * head.ROW * WORDS
    torch.manual_seed(1)
    hidden, weight = (torch.randn(size, WIDTH).to(dtype).requires_grad_() for size in (ROWS, WORDS))
    targets = torch.randint(WORDS, (ROWS,))
    # In bf16 the logits are rounded, which the other gradients show more than what chunks sum does.
    cases = [(1.0, LOSSES[0])] if dtype == torch.bfloat16 else [(t, one) for t in (1.0, 0.7) for one in LOSSES]
    found = []
    for temperature, weights in cases:
        made = gradients(hidden, weight, targets, temperature, weights)
        right = expected(hidden, weight, targets, temperature, weights)
        pairs = list(zip(made, right, strict=True))[1 if dtype == torch.bfloat16 else 0 :]
        found += [float((one - other).abs().max() / other.abs().max()) for one, other in pairs]
    return max(found)


def size(device, words):
    weight = SimpleNamespace(shape=(words, WIDTH), device=torch.device(device))
    return head.chunks(10_000, weight)[0].stop


sizes = {f"{device} {words}": size(device, words) for device in ("cpu", "cuda") for words in (8192, 151_936)}
found = {str(dtype)[6:]: [errors(dtype, rows) for rows in (ROWS, 300, 1)] for dtype in (torch.float32, torch.bfloat16)}
print(json.dumps({"sizes": sizes, "errors": found}))
