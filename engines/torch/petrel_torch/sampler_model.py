"""
What samplers share: the weights as they were loaded, in fp32 and laid out as their folder, and a seed for each sample.
Several samplers of a machine can have one copy of them.
"""

import hashlib
import math
import mmap
import os

import torch

from .folder import ModelFolder
from .names import held
from .state import State


# Bytes of a line of a processor's cache.
ALIGNED = 64


class SamplerModel:
    def __init__(self, group, shared, args, device, memory=None):
        self.group, self.shared = group, shared
        self.dtype = torch.bfloat16 if args["compute"] == "bf16" else torch.float32
        self.folder = ModelFolder(args["folder"], "tokens")
        self.config = self.folder.config
        self.model, self.stored = self.folder.build()
        buffers = {name: buffer.clone() for name, buffer in self.model.named_buffers()}
        self.model.to_empty(device=device).requires_grad_(False)
        for name, buffer in self.model.named_buffers():
            buffer.data = buffers[name].to(device)
        self.model.tie_weights()
        self.memory = memory
        if memory is not None:
            memory.place(held(self.model))
        self.state = State(self.model, self.stored, group, trainable=False)
        if memory is None or not memory.follows:
            self.folder.load_base(self.state, group.tick)

    def facts(self):
        return {
            "vocab": self.config.vocab_size,
            "maxPositions": self.config.max_position_embeddings,
            "labels": 1,
            "parameters": self.state.parameters,
            "outputs": [],
            **({} if self.memory is None else {"weightsFile": self.memory.path}),
        }

    def loadFolder(self, args):
        self.folder.load(self.state, args["folder"], args["newHead"], self.group.tick)
        self.loaded({})

    def put(self, args):
        self.state.put(args["part"], args["dtype"], args["start"], self.shared.tensor(args["bytes"]))

    def get(self, args):
        self.state.get(args["part"], args["dtype"], args["start"], self.shared.tensor(args["bytes"]))


class WeightsMemory:
    """A file without a name in this machine's memory, in which several processes have the weights of one model."""

    def __init__(self, follows=None):
        """`follows`: the path of one that another process has filled."""
        self.follows = follows is not None
        self.fd = os.open(follows, os.O_RDWR) if self.follows else os.memfd_create("petrel-weights")
        self.path = follows or f"/proc/{os.getpid()}/fd/{self.fd}"
        # Maps a tensor's name to the byte at which it begins.
        self.starts = {}

    def place(self, tensors):
        """The tensors lie in it from now on. name -> tensor, in the same order in all processes."""
        end = 0
        for name, one in tensors.items():
            self.starts[name] = end
            end += -(-one.numel() * one.element_size() // ALIGNED) * ALIGNED
        if not self.follows:
            os.ftruncate(self.fd, end)
        memory = mmap.mmap(self.fd, end)
        for name, one in tensors.items():
            placed = part_of(memory, one.dtype, one.shape, self.starts[name])
            if not self.follows and not isinstance(one, torch.nn.Parameter):
                placed.copy_(one)
            one.data = placed


def part_of(memory, dtype, shape, start):
    """The tensor that begins at byte `start`. It is no copy."""
    if 0 in shape:
        return torch.empty(shape, dtype=dtype)
    return torch.frombuffer(memory, dtype=dtype, count=math.prod(shape), offset=start).view(shape)


def seed_of(random):
    """A number of 63 bits of its own for each sample: of its seed, draw, sample and turn."""
    words = [*random["seed"], random["draw"], random["sample"], random["turn"]]
    digest = hashlib.sha256(",".join(map(str, words)).encode()).digest()
    return int.from_bytes(digest[:8], "little") >> 1
