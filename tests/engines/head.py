"""
The gradient of the head's weight in one chunk, in two and in many. Prints a JSON object: its largest relative error by
compute type, beside autograd's in fp64, and the rows of a chunk by vocabulary. `head.py <folder of engines/torch>`.
"""

import json
import sys
from types import SimpleNamespace

sys.path.insert(0, sys.argv[1])

import torch  # noqa: E402
from petrel_torch import head  # noqa: E402

ROWS, WORDS, WIDTH = 600, 50, 16


def gradients(hidden, weight, targets):
    outputs = head.HeadOutputs.apply(
        hidden, weight, None, targets, 1.0, head.LogitForm(), frozenset({"logProbs", "entropy"}), None
    )
    return torch.autograd.grad((outputs[0] + 0.5 * outputs[1]).sum(), (hidden, weight))


def expected(hidden, weight, targets):
    hidden, weight = (one.detach().double().requires_grad_() for one in (hidden, weight))
    log_p = torch.log_softmax(hidden @ weight.T, -1)
    outputs = log_p.gather(1, targets[:, None]).squeeze(1) - 0.5 * (log_p.exp() * log_p).sum(-1)
    return torch.autograd.grad(outputs.sum(), (hidden, weight))


def errors(dtype, rows):
    head.MOST["cpu"] = rows * head.ROW * WORDS
    torch.manual_seed(1)
    hidden, weight = (torch.randn(size, WIDTH).to(dtype).requires_grad_() for size in (ROWS, WORDS))
    targets = torch.randint(WORDS, (ROWS,))
    _, made = gradients(hidden, weight, targets)
    _, right = expected(hidden, weight, targets)
    return float((made - right).abs().max() / right.abs().max())


def size(device, words):
    weight = SimpleNamespace(shape=(words, WIDTH), device=torch.device(device))
    return head.chunks(10_000, weight)[0].stop


sizes = {f"{device} {words}": size(device, words) for device in ("cpu", "cuda") for words in (8192, 151_936)}
found = {str(dtype)[6:]: [errors(dtype, rows) for rows in (ROWS, 300, 1)] for dtype in (torch.float32, torch.bfloat16)}
print(json.dumps({"sizes": sizes, "errors": found}))
