"""
The weights of a sampler as they were published: a file of safetensors without a name in this machine's memory. The
worker fills it; several samplers, and the processes of one that is divided, read the same one.
"""

import json
import math
import mmap
import os
from dataclasses import dataclass

import torch

DTYPES = {"F32": torch.float32, "BF16": torch.bfloat16}


@dataclass(frozen=True)
class Place:
    name: str
    dtype: torch.dtype
    shape: tuple
    # Byte of the file at which the tensor begins.
    start: int


class WeightsFile:
    def __init__(self, follows=None):
        """`follows`: the path of one that another process has made."""
        self.fd = os.memfd_create("petrel-weights") if follows is None else os.open(follows, os.O_RDWR)
        self.path = follows or f"/proc/{os.getpid()}/fd/{self.fd}"

    def places(self):
        """Where each tensor lies, as the file says."""
        length = int.from_bytes(os.pread(self.fd, 8, 0), "little")
        header = json.loads(os.pread(self.fd, length, 8))
        header.pop("__metadata__", None)
        return [
            Place(name, DTYPES[one["dtype"]], tuple(one["shape"]), 8 + length + one["data_offsets"][0])
            for name, one in header.items()
        ]

    def tensors(self):
        """name -> tensor, which is no copy. They are valid until the worker makes the file anew."""
        memory = mmap.mmap(self.fd, 0)
        return {one.name: tensor_at(memory, one) for one in self.places()}


def tensor_at(memory, place):
    if 0 in place.shape:
        return torch.empty(place.shape, dtype=place.dtype)
    count = math.prod(place.shape)
    return torch.frombuffer(memory, dtype=place.dtype, count=count, offset=place.start).view(place.shape)


class Filed:
    """A parameter of a model, whose tensors go to the file as its folder has them: what ModelFolder fills."""

    def __init__(self, name, parts):
        """`parts`: (Stored, tensor)"""
        self.name, self.parts = name, {stored.first: (stored, tensor) for stored, tensor in parts}

    def take(self, values):
        values = values.reshape(-1)
        for first, (stored, tensor) in self.parts.items():
            tensor.view(-1).copy_(values[first : first + stored.elements])

    def take_part(self, first, values):
        self.parts[first][1].view(-1).copy_(values)

    def forget_moments(self):
        pass
