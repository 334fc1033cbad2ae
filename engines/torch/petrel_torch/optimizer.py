"""
AdamW as torch has it: w *= 1 - lr weightDecay; m, v: moments of the clipped gradient g;
w -= lr / (1 - beta1^t) m / (sqrt(v) / sqrt(1 - beta2^t) + eps).

A state in fp32 is updated where it lies. One in bf16 is updated in fp32, a part at a time, and rounded stochastically
(Gupta et al. 2015, arXiv 1502.02551): up or down, so that the mean is what was computed. Rounded to the nearest, a
change of less than half a step of bf16 would be lost, and at usual learning rates most are.
"""

import torch
from torch.optim.adamw import adamw

# Values that are computed in fp32 at a time.
VALUES_AT_ONCE = 4 << 20


def update(state, gradients, scale, args):
    """
    `gradients`: of the pieces that learn, in their order. `scale`: what clipping multiplies them by; 1 leaves them as
    they are.
    """
    wide, narrow = [], []
    for piece, gradient in zip(state.learning, gradients, strict=True):
        (narrow if piece.weights.dtype == torch.bfloat16 else wide).append((piece, gradient))
    if wide:
        if scale != 1:
            torch._foreach_mul_([gradient for _, gradient in wide], scale)
        arrays = zip(*[(piece.weights, gradient, piece.m, piece.v) for piece, gradient in wide], strict=True)
        take(*map(list, arrays), state.steps, args)
    for piece, gradient in narrow:
        update_narrow(piece, gradient, scale, state.steps, args)


def update_narrow(piece, gradient, scale, steps, args):
    # Ranks with the same piece must round alike. The next step, and the next piece, round by other bits.
    bits = torch.Generator(gradient.device).manual_seed(steps << 20 | piece.number)
    arrays = piece.weights, piece.m, piece.v
    for start in range(0, gradient.numel(), VALUES_AT_ONCE):
        parts = [one[start : start + VALUES_AT_ONCE] for one in arrays]
        weights, m, v = (one.float() for one in parts)
        take([weights], [gradient[start : start + VALUES_AT_ONCE].float() * scale], [m], [v], steps, args)
        drawn = torch.empty(weights.shape, dtype=torch.int64, device=weights.device).random_(generator=bits)
        for part, computed in zip(parts, (weights, m, v), strict=True):
            part.copy_(rounded(computed, (drawn & 0xFFFF).to(torch.int32)))
            drawn >>= 16


def rounded(values, noise):
    """
    fp32 values with the lower 16 bits 0, which bf16 has exactly. `noise`: integers of 0 to 65,535, each as likely as
    the others.
    """
    return ((values.view(torch.int32) + noise) & ~0xFFFF).view(torch.float32)


def take(weights, gradients, m, v, steps, args):
    """Lists of tensors, which are updated where they lie."""
    adamw(
        weights,
        gradients,
        m,
        v,
        [],
        [torch.tensor(float(steps), device=one.device) for one in gradients],
        fused=True,
        amsgrad=False,
        beta1=args["beta1"],
        beta2=args["beta2"],
        lr=args["lr"],
        weight_decay=args["weightDecay"],
        eps=args["eps"],
        maximize=False,
    )
