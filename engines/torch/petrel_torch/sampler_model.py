"""
What samplers share: the weights as they were loaded, in fp32 and laid out as their folder, and a seed for each sample.
"""

import hashlib

import torch

from .folder import ModelFolder
from .state import State


class SamplerModel:
    def __init__(self, group, shared, args, device):
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
        self.state = State(self.model, self.stored, group, trainable=False)
        self.folder.load_base(self.state, group.tick)

    def facts(self):
        return {
            "vocab": self.config.vocab_size,
            "maxPositions": self.config.max_position_embeddings,
            "labels": 1,
            "parameters": self.state.parameters,
            "outputs": [],
        }

    def loadFolder(self, args):
        self.folder.load(self.state, args["folder"], args["newHead"], self.group.tick)
        self.loaded({})

    def put(self, args):
        self.state.put(args["part"], args["dtype"], args["start"], self.shared.tensor(args["bytes"]))

    def get(self, args):
        self.state.get(args["part"], args["dtype"], args["start"], self.shared.tensor(args["bytes"]))


def seed_of(random):
    """A number of 63 bits of its own for each sample: of its seed, draw, sample and turn."""
    words = [*random["seed"], random["draw"], random["sample"], random["turn"]]
    digest = hashlib.sha256(",".join(map(str, words)).encode()).digest()
    return int.from_bytes(digest[:8], "little") >> 1
