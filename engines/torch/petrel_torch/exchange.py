"""
Tokens for heads (Ulysses: Jacobs et al. 2023, "DeepSpeed Ulysses"): the ranks of a lane have a share of its tokens
each; while they attend, each has all tokens and a share of the heads.
"""

from dataclasses import dataclass
from math import prod

import torch
import torch.distributed as dist


def bounds_of(tokens, ranks):
    """[(start, end)]: the tokens of each rank."""
    return [(rank * tokens // ranks, (rank + 1) * tokens // ranks) for rank in range(ranks)]


@dataclass(frozen=True)
class Shares:
    # Tokens of each rank, and which of them this one is.
    tokens: list
    rank: int
    group: dist.ProcessGroup

    def to_heads(self, given):
        """[1, heads, tokens of the rank, D] -> [1, heads / ranks, all tokens, D]. Too few heads are repeated."""
        ranks = len(self.tokens)
        if given.shape[1] < ranks:
            given = given.repeat_interleave(ranks // given.shape[1], dim=1)
        _, heads, own, width = given.shape
        mine = heads // ranks
        shapes = [(mine, tokens, width) for tokens in self.tokens]
        found = self._exchanged(given.reshape(-1), shapes, [(mine, own, width)] * ranks)
        return torch.cat(found, dim=1).unsqueeze(0)

    def to_tokens(self, given):
        """[1, all tokens, heads / ranks, D] -> [1, tokens of the rank, heads, D]"""
        _, _, mine, width = given.shape
        own = self.tokens[self.rank]
        shapes = [(own, mine, width)] * len(self.tokens)
        found = self._exchanged(given.reshape(-1), shapes, [(tokens, mine, width) for tokens in self.tokens])
        return torch.cat(found, dim=1).unsqueeze(0)

    def _exchanged(self, flat, received, sent):
        """Shapes of what comes from each rank, and of what goes to each."""
        sizes = [[prod(shape) for shape in shapes] for shapes in (received, sent)]
        parts = Exchange.apply(flat, *sizes, self.group).split(sizes[0])
        return [part.view(shape) for part, shape in zip(parts, received, strict=True)]


class Exchange(torch.autograd.Function):
    @staticmethod
    def forward(ctx, flat, received, sent, group):
        ctx.sizes = received, sent, group
        out = flat.new_empty(sum(received))
        dist.all_to_all_single(out, flat.contiguous(), received, sent, group=group)
        return out

    @staticmethod
    def backward(ctx, gradient):
        received, sent, group = ctx.sizes
        return Exchange.apply(gradient, sent, received, group), None, None, None
