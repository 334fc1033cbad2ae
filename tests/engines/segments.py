"""
What ranks have of tensors, against the same cuts by indices: of random shapes, divisions and bytes. Prints how many
cases were compared. `segments.py <folder of engines/torch> <seed>`.
"""

import random
import sys
from types import SimpleNamespace

sys.path.insert(0, sys.argv[1])

import torch  # noqa: E402
from petrel_torch.segments import cut, part_at, segments_of  # noqa: E402
from petrel_torch.state import State, Stretch, dtypes, widths  # noqa: E402


def spans_for(shape, random):
    """A tensor that is divided by a dimension, maybe packed, and what is left of it by the first one."""
    spans = [[(0, size)] for size in shape]
    if random.random() < 0.8:
        dim, parts = random.randrange(len(shape)), random.choice([1, 1, 2])
        if shape[dim] % parts == 0:
            ranks = random.randint(1, 3)
            spans[dim] = cut(spans[dim], parts, ranks, random.randrange(ranks))
    ranks = random.randint(1, 3)
    spans[0] = cut(spans[0], 1, ranks, random.randrange(ranks))
    return spans


def compare(random):
    shape = [random.randint(1, 5) for _ in range(random.randint(1, 3))]
    spans = spans_for(shape, random)
    whole = torch.randn(shape)
    own = part_at(whole, spans).reshape(-1).clone()
    segments = segments_of(shape, spans)
    found = torch.zeros(whole.numel())
    for one in segments:
        one.of_whole(found, 0).copy_(one.of_rank(own))
    kept = torch.zeros_like(whole)
    for index in torch.cartesian_prod(*[torch.arange(size) for size in shape]).view(-1, len(shape)).tolist():
        if all(any(a <= i < b for a, b in ranges) for i, ranges in zip(index, spans, strict=True)):
            kept[tuple(index)] = whole[tuple(index)]
    assert torch.equal(found, kept.view(-1)), (shape, spans)
    # The tensor is two of the folder's, one after the other, in a flat array that begins elsewhere.
    middle, before = random.randint(0, whole.numel()), random.randint(0, 7)
    piece = SimpleNamespace(part=lambda _: own)
    state = SimpleNamespace(stretches=[])
    for low, high in ((0, middle), (middle, whole.numel())):
        mine = [part.moved(before) for each in segments for part in each.within(low, high)]
        if mine:
            state.stretches.append(Stretch(before + low, before + high, piece, mine))
    state._ends = [one.end for one in state.stretches]
    state._within = lambda *args: State._within(state, *args)
    dtype = random.choice(["F32", "BF16"])
    stored = torch.cat([torch.zeros(before), kept.view(-1), torch.zeros(3)]).to(dtypes[dtype]).view(torch.uint8)
    start = random.randrange(len(stored))
    end = random.randint(start + 1, len(stored))
    given = torch.zeros(end - start, dtype=torch.uint8)
    State.get(state, "weights", dtype, start, given)
    assert torch.equal(given, stored[start:end]), (shape, spans, dtype, start, end)
    # Other values come in, in two parts.
    other = torch.randn(whole.numel() + before + 3).to(dtypes[dtype])
    data, at = other.view(torch.uint8), random.randint(0, widths[dtype] * len(other))
    State.put(state, "weights", dtype, 0, data[:at])
    State.put(state, "weights", dtype, at, data[at:])
    expected = part_at(other[before : before + whole.numel()].float().view(shape), spans).reshape(-1)
    assert torch.equal(own, expected), (shape, spans, dtype, at)


made = random.Random(int(sys.argv[2]))
for _ in range(2000):
    compare(made)
print("compared 2000")
