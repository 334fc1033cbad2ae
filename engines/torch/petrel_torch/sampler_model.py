"""What samplers share: a model with the weights as they were loaded, and a seed for each sample."""

import hashlib

import torch

from .folder import ModelFolder
from .state import State


def whole_model(folder, group, device):
    """A model without values but those of its buffers, and its state."""
    model, stored = folder.build()
    buffers = {name: buffer.clone() for name, buffer in model.named_buffers()}
    model.to_empty(device=device).requires_grad_(False)
    for name, buffer in model.named_buffers():
        buffer.data = buffers[name].to(device)
    model.tie_weights()
    return model, State(model, stored, group, trainable=False)


class SamplerModel:
    """The weights in fp32, laid out as their folder."""

    def __init__(self, group, shared, args, device):
        self.group, self.shared = group, shared
        self.dtype = torch.bfloat16 if args["compute"] == "bf16" else torch.float32
        self.folder = ModelFolder(args["folder"], "tokens")
        self.config = self.folder.config
        self.model, self.state = whole_model(self.folder, group, device)
        self.stored = self.state.stored
        self.folder.load_base(self.state, group.tick)

    def facts(self):
        return facts_of(self.config, self.state.parameters)

    def loadFolder(self, args):
        self.folder.load(self.state, args["folder"], args["newHead"], self.group.tick)
        self.loaded({})

    def put(self, args):
        self.state.put(args["part"], args["dtype"], args["start"], self.shared.tensor(args["bytes"]))

    def get(self, args):
        self.state.get(args["part"], args["dtype"], args["start"], self.shared.tensor(args["bytes"]))


def facts_of(config, parameters):
    return {
        "vocab": config.vocab_size,
        "maxPositions": config.max_position_embeddings,
        "labels": 1,
        "parameters": parameters,
        "outputs": [],
    }


def seed_of(random):
    """A number of 63 bits of its own for each sample: of its seed, draw, sample and turn."""
    words = [*random["seed"], random["draw"], random["sample"], random["turn"]]
    digest = hashlib.sha256(",".join(map(str, words)).encode()).digest()
    return int.from_bytes(digest[:8], "little") >> 1
