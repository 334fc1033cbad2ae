"""
The state of a model as flat arrays: the tensors of its folder one after the other, names ascending. A rank has a piece
of each parameter: of a tensor of the folder one run where FSDP2 alone divides it, else one for each row.
"""

import os
from bisect import bisect_left, bisect_right
from dataclasses import dataclass

import torch
from .division import holders_of, local, part_at, segments_of, spans_of
from .names import held


class Piece:
    """What this rank has of a tensor in memory."""

    def __init__(self, name, tensor, ranks, trainable):
        self.name, self.tensor = name, tensor
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
        weights, end = self.weights, first + len(values)
        for one in overlapping(self.segments, first, end):
            low, high = max(first, one.start), min(end, one.start + one.elements)
            weights[one.first + low - one.start : one.first + high - one.start] = values[low - first : high - first]

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
class Run:
    """Elements [start, end) of every flat array: this rank has them in its piece, from `first` on."""

    start: int
    end: int
    piece: Piece
    first: int


class State:
    def __init__(self, model, stored, group, trainable):
        """`stored`: what the state has, as ModelFolder.build found before the model was sharded."""
        tensors = held(model)
        pieces = {name: Piece(name, tensor, group.ranks, trainable) for name, tensor in tensors.items()}
        self.stored = stored
        self.parameters = parameters_of(model, tensors, stored)
        self.pieces = list(pieces.values())
        self.learning = [piece for piece in self.pieces if piece.learns and piece.weights.numel() > 0]
        self.runs = []
        offset = 0
        for one in stored:
            piece = pieces[one.source]
            for segment in overlapping(piece.segments, one.first, one.first + one.elements):
                low = max(one.first, segment.start)
                high = min(one.first + one.elements, segment.start + segment.elements)
                start = offset + low - one.first
                self.runs.append(Run(start, start + high - low, piece, segment.first + low - segment.start))
            offset += one.elements
        self._starts = [run.start for run in self.runs]
        self.steps = 0

    def put(self, part, dtype, start, data):
        """
        Takes bytes of a part's values in `dtype`, from byte `start` on, as far as this rank has them. They may begin
        and end in the middle of a value.
        """
        for values, first, last, some in self._overlaps(part, dtype, start, data):
            if values is not None:
                stored_bytes(values, dtype, first, last, some, True)

    def get(self, part, dtype, start, data):
        """The reverse; fp32 becomes bf16 by rounding to the nearest, of two equally near to the even one."""
        for values, first, last, some in self._overlaps(part, dtype, start, data):
            if values is None:
                some.zero_()
            else:
                stored_bytes(values, dtype, first, last, some, False)

    def copy(self, part, dtype, start, file, tick):
        """Writes what this rank has of a part to `file`, in which the part begins at byte `start`."""
        width = widths[dtype]
        for run in self.runs:
            values = run.piece.part(part)
            if values is None:
                continue  # 0, as is what was never written
            for low in range(run.start, run.end, copied_values):
                high = min(run.end, low + copied_values)
                first = run.first + low - run.start
                some = values[first : first + high - low].to("cpu", dtypes[dtype]).view(torch.uint8).numpy()
                write_fully(file, memoryview(some), start + low * width)
                tick()

    def _overlaps(self, part, dtype, start, data):
        """(values of a run, bytes [first, last) of them as stored, the part of `data` that has these bytes)"""
        width = widths[dtype]
        end = start + data.numel()
        for run in self.runs[max(0, bisect_right(self._starts, start // width) - 1) :]:
            run_start, run_end = run.start * width, run.end * width
            if run_start >= end:
                return
            low, high = max(start, run_start), min(end, run_end)
            if low < high:
                values = run.piece.part(part)
                mine = None if values is None else values[run.first : run.first + run.end - run.start]
                yield mine, low - run_start, high - run_start, data[low - start : high - start]


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


def overlapping(segments, start, end):
    """Of ascending segments, those with elements of [start, end)."""
    first = bisect_right(segments, start, key=lambda one: one.start + one.elements)
    return segments[first : bisect_left(segments, end, key=lambda one: one.start)]


# Values that are copied at a time.
copied_values = 16 << 20


def write_fully(file, data, at):
    while data:
        written = os.pwrite(file, data, at)
        data, at = data[written:], at + written


dtypes = {"F32": torch.float32, "BF16": torch.bfloat16}
widths = {name: dtype.itemsize for name, dtype in dtypes.items()}


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

