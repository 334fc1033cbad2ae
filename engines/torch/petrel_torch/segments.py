"""Where the elements lie that a rank has of a tensor, whatever divides it."""

from dataclasses import dataclass, replace

import torch
from torch.distributed.tensor import DTensor


def local(tensor):
    """What this rank has of a tensor that is divided."""
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


@dataclass(frozen=True)
class Segment:
    """
    `count` rows of a whole tensor that a rank has: of `elements` each, row k from element `start` + k `stride` on.
    Among the rank's own elements it begins at `first` + k `step`.
    """

    start: int
    elements: int
    first: int
    count: int = 1
    stride: int = 0
    step: int = 0

    @property
    def end(self):
        """Element after the last one."""
        return self.start + (self.count - 1) * self.stride + self.elements

    def row(self, k):
        return Segment(self.start + k * self.stride, self.elements, self.first + k * self.step)

    def moved(self, by):
        return replace(self, start=self.start + by)

    def within(self, low, high):
        """What lies in elements [low, high): whole rows, and rows that are cut."""
        if self.start >= low and self.end <= high:
            return [self]
        if self.count == 1:
            start, end = max(low, self.start), min(high, self.end)
            if start >= end:
                return []
            return [Segment(start, end - start, self.first + start - self.start)]
        # Rows that begin before `high` and end after `low`; of these, the whole ones.
        begin = max(0, -(-(low - self.start - self.elements + 1) // self.stride))
        end = min(self.count, -(-(high - self.start) // self.stride))
        if begin >= end:
            return []
        whole_begin = begin + (self.row(begin).start < low)
        whole_end = max(whole_begin, end - (self.row(end - 1).end > high))
        found = [piece for k in range(begin, whole_begin) for piece in self.row(k).within(low, high)]
        if whole_begin < whole_end:
            one = self.row(whole_begin)
            found.append(replace(self, start=one.start, first=one.first, count=whole_end - whole_begin))
        return found + [piece for k in range(whole_end, end) for piece in self.row(k).within(low, high)]

    def of_rank(self, values):
        """[count, elements]: its part of the rank's own elements. It is no copy."""
        return values.as_strided((self.count, self.elements), (self.step, 1), values.storage_offset() + self.first)

    def of_whole(self, values, at):
        """[count, elements]: its part of elements of the whole tensor, the first of which is `at`. It is no copy."""
        offset = values.storage_offset() + self.start - at
        return values.as_strided((self.count, self.elements), (self.stride, 1), offset)


def spans_of(tensor):
    """
    For each dimension, which indices [start, end) of the whole tensor this rank has. The last dimension of a mesh
    divides first, into ranges of equal parts where several matrices are packed into one (split_factor); FSDP2, the
    first one, divides what is left by its first dimension, in pieces of equal size but for the last ones.
    """
    spans = [[(0, size)] for size in tensor.shape]
    if not isinstance(tensor, DTensor):
        return spans
    mesh = tensor.device_mesh
    for axis in reversed(range(mesh.ndim)):
        placement = tensor.placements[axis]
        if placement.is_replicate():
            continue
        dim = placement.dim % tensor.ndim
        parts = 1 if axis == 0 else getattr(placement, "split_factor", 1)
        spans[dim] = cut(spans[dim], parts, mesh.size(axis), mesh.get_local_rank(axis))
    return spans


def cut(ranges, parts, ranks, rank):
    """Of each of `parts` equal parts of the indices in `ranges`, what rank `rank` of `ranks` has."""
    count = sum(end - start for start, end in ranges)
    part = count // parts
    size = -(-part // ranks)
    wanted = [(one * part + min(part, rank * size), one * part + min(part, (rank + 1) * size)) for one in range(parts)]
    found, before = [], 0
    for start, end in ranges:
        for low, high in wanted:
            first, last = max(low, before), min(high, before + end - start)
            if first < last:
                found.append((start + first - before, start + last - before))
        before += end - start
    return found


def segments_of(shape, spans):
    """What a rank has of a tensor, in the order of its own elements, which is that of the whole tensor."""
    inner, dims = 1, len(shape)
    while dims > 0 and spans[dims - 1] == [(0, shape[dims - 1])]:
        dims -= 1
        inner *= shape[dims]
    if dims == 0:
        return [Segment(0, inner, 0)] if inner > 0 else []
    ranges, stride = spans[dims - 1], shape[dims - 1] * inner
    step = sum(end - start for start, end in ranges) * inner
    if step == 0:
        return []
    segments, first = [], 0
    for base, count in rows_of(shape[: dims - 1], spans[: dims - 1]):
        within = first
        for start, end in ranges:
            row = Segment(base * stride + start * inner, (end - start) * inner, within)
            segments.append(row if count == 1 else replace(row, count=count, stride=stride, step=step))
            within += row.elements
        first += count * step
    return segments


def rows_of(shape, spans):
    """[(first, count)]: which of the rows before the innermost dimension that is divided."""
    if not shape:
        return [(0, 1)]
    whole = 1
    for size in shape[1:]:
        whole *= size
    if all(ranges == [(0, size)] for size, ranges in zip(shape[1:], spans[1:], strict=True)):
        return [(start * whole, (end - start) * whole) for start, end in spans[0]]
    below = rows_of(shape[1:], spans[1:])
    indices = [index for start, end in spans[0] for index in range(start, end)]
    return [(index * whole + first, count) for index in indices for first, count in below]


def part_at(values, spans):
    """Of a whole tensor, what a rank has of it."""
    for dim, ranges in enumerate(spans):
        if ranges != [(0, values.shape[dim])]:
            pieces = [values.narrow(dim, start, end - start) for start, end in ranges]
            values = torch.cat(pieces, dim) if pieces else values.narrow(dim, 0, 0)
    return values


def holders_of(tensor, ranks):
    """How many ranks have the same part of a tensor."""
    if not isinstance(tensor, DTensor):
        return ranks
    parts = 1
    for axis, placement in enumerate(tensor.placements):
        parts *= 1 if placement.is_replicate() else tensor.device_mesh.size(axis)
    return ranks // parts
