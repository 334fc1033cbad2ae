"""
The state of a model as flat arrays: the tensors of its folder one after the other, names ascending. A rank has a piece
of each parameter: rows of it that follow one another, or a part of each row.
"""

import os
from bisect import bisect_right
from dataclasses import dataclass

import torch

from .names import held
from .segments import holders_of, local, part_at, segments_of, spans_of


class Piece:
    """What this rank has of a tensor in memory."""

    def __init__(self, number, name, tensor, ranks, trainable):
        self.number, self.name, self.tensor = number, name, tensor
        self.spans = spans_of(tensor)
        self.segments = segments_of(tensor.shape, self.spans)
        # How many ranks have the same.
        self.holders = holders_of(tensor, ranks)
        self.learns = trainable and tensor.requires_grad
        self.m, self.v = (
            (torch.zeros_like(self.weights), torch.zeros_like(self.weights)) if self.learns else (None, None)
        )

    def take(self, values):
        """Of all values of the tensor, those that this rank has."""
        self.weights.copy_(part_at(values, self.spans).reshape(-1))

    def take_part(self, first, values):
        """Of values of the tensor from element `first` on, those that this rank has."""
        for each in self.segments:
            for one in each.within(first, first + len(values)):
                one.of_rank(self.weights).copy_(one.of_whole(values, first))

    def forget_moments(self):
        if self.learns:
            self.m.zero_()
            self.v.zero_()

    @property
    def weights(self):
        return local(self.tensor.detach()).view(-1)

    @property
    def gradient(self):
        """0 where no pass reached the parameter."""
        gradient = self.tensor.grad
        return torch.zeros_like(self.weights) if gradient is None else local(gradient).view(-1)

    def part(self, name):
        """None for the moments of what does not learn: they are 0."""
        return self.weights if name == "weights" else {"m": self.m, "v": self.v}[name]


@dataclass(frozen=True)
class Stretch:
    """A tensor of the folder: elements [start, end) of every flat array, and what this rank has of them."""

    start: int
    end: int
    piece: Piece
    segments: list


class State:
    def __init__(self, model, stored, group, trainable):
        """`stored`: what the state has, as ModelFolder.build found before the model was sharded."""
        tensors = held(model)
        pieces = {
            name: Piece(number, name, tensor, group.ranks, trainable)
            for number, (name, tensor) in enumerate(tensors.items())
        }
        self.stored = stored
        self.parameters = parameters_of(model, tensors, stored)
        self.pieces = list(pieces.values())
        self.learning = [piece for piece in self.pieces if piece.learns and piece.weights.numel() > 0]
        self.stretches = []
        offset = 0
        for one in stored:
            piece, end = pieces[one.source], one.first + one.elements
            own = [part.moved(offset - one.first) for each in piece.segments for part in each.within(one.first, end)]
            if own:
                self.stretches.append(Stretch(offset, offset + one.elements, piece, own))
            offset += one.elements
        self._ends = [stretch.end for stretch in self.stretches]
        self.steps = 0

    def put(self, part, dtype, start, data):
        """
        Takes bytes of a part's values in `dtype`, from byte `start` on, as far as this rank has them. They may begin
        and end in the middle of a value.
        """
        for values, segment in self._within(part, dtype, start, data):
            if values is not None:
                move(values, dtype, segment, start, data, True)

    def get(self, part, dtype, start, data):
        """The reverse; fp32 becomes bf16 by rounding to the nearest, of two equally near to the even one."""
        for values, segment in self._within(part, dtype, start, data):
            move(values, dtype, segment, start, data, False)

    def copy(self, part, dtype, start, file, tick):
        """Writes what this rank has of a part to `file`, in which the part begins at byte `start`."""
        width = widths[dtype]
        for stretch in self.stretches:
            values = stretch.piece.part(part)
            if values is None:
                continue  # 0, as is what was never written
            for segment in stretch.segments:
                for low in range(segment.start, segment.end, copied_values):
                    for some in segment.within(low, low + copied_values):
                        rows = some.of_rank(values).to("cpu", dtypes[dtype]).contiguous().view(torch.uint8).numpy()
                        for k in range(some.count):
                            write_fully(file, memoryview(rows[k]), start + some.row(k).start * width)
                        tick()

    def _within(self, part, dtype, start, data):
        """What this rank has of the values that have these bytes, even a part of theirs: (values, segment)."""
        width = widths[dtype]
        low, high = start // width, -(-(start + data.numel()) // width)
        for i in range(bisect_right(self._ends, low), len(self.stretches)):
            stretch = self.stretches[i]
            if stretch.start >= high:
                return
            values = stretch.piece.part(part)
            for each in stretch.segments:
                for segment in each.within(low, high):
                    yield values, segment


# Values that are copied at a time.
copied_values = 16 << 20


def write_fully(file, data, at):
    while data:
        written = os.pwrite(file, data, at)
        data, at = data[written:], at + written


dtypes = {"F32": torch.float32, "BF16": torch.bfloat16}
widths = {name: dtype.itemsize for name, dtype in dtypes.items()}


def move(values, dtype, segment, start, data, into_values):
    """
    Copies between `data`, whose first byte is byte `start` of the part as it is stored, and a segment of `values`. None
    for values that are 0.
    """
    stored, width = dtypes[dtype], widths[dtype]
    is_whole = segment.start * width >= start and segment.end * width <= start + data.numel()
    aligned = (data.storage_offset() + segment.start * width - start) % width == 0
    if is_whole and aligned:
        first = segment.start * width - start
        typed = data[first : segment.end * width - start].view(stored)
        rows = segment.of_whole(typed, segment.start)
        if values is None:
            rows.zero_()
        elif into_values:
            segment.of_rank(values).copy_(rows)
        else:
            rows.copy_(segment.of_rank(values))
        return
    for k in range(segment.count):
        row = segment.row(k)
        first, last = max(start, row.start * width), min(start + data.numel(), row.end * width)
        some = data[first - start : last - start]
        if values is None:
            some.zero_()
            continue
        mine = values[row.first : row.first + row.elements]
        stored_bytes(mine, dtype, first - row.start * width, last - row.start * width, some, into_values)


def parameters_of(model, tensors, stored):
    """What the worker gets to know of each tensor of a state. `tensors`: what the model holds."""
    embedding = model.get_input_embeddings().weight
    return [
        {
            "name": one.name,
            "shape": list(one.shape),
            # What products alone read. An embedding is read as it is, also where the head has the same tensor.
            **({"rounded": True} if len(one.shape) == 2 and tensors[one.source] is not embedding else {}),
            **({} if isinstance(tensors[one.source], torch.nn.Parameter) else {"fixed": True}),
        }
        for one in stored
    ]


def stored_bytes(values, dtype, first, last, data, into_values):
    """Copies between `data` and bytes [first, last) of `values` as they are stored in `dtype`."""
    stored, width = dtypes[dtype], widths[dtype]
    if values.dtype == stored:
        mine = values.view(torch.uint8)[first:last]
        mine.copy_(data) if into_values else data.copy_(mine)
        return
    low, high = first // width, -(-last // width)
    if into_values and (low * width, high * width) == (first, last) and data.storage_offset() % width == 0:
        values[low:high].copy_(data.view(stored))
        return
    whole = values[low:high].to(stored).view(torch.uint8)
    mine = whole[first - width * low : last - width * low]
    if not into_values:
        data.copy_(mine)
        return
    mine.copy_(data)
    values[low:high] = whole.view(stored).to(values.dtype)

