"""The calls of a model that scores tokens and, when trainable, learns: core/ports/policy.ts."""

import math
from contextlib import nullcontext

import torch
import torch.distributed as dist
from torch.optim.adamw import adamw

from .activations import Activations
from .attention import Pack, use_packed, within
from .device import free_bytes
from .folder import ModelFolder
from .model import Scored, forget_gathered, shard
from .routing import Routing
from .state import State

# Descriptor of the memory for a copy of the state.
COPY = 5

outputs_of_head = {
    "tokens": ["logProbs", "entropy", "sumPiSquared", "logits", "topTokens", "topLogProbs"],
    "values": ["values"],
    "scores": ["scores"],
}


class Training:
    calls = (
        "loadFolder",
        "put",
        "get",
        "copy",
        "loaded",
        "forward",
        "backward",
        "discard",
        "step",
        "zeroGrads",
        "close",
    )

    def __init__(self, group, shared, args):
        self.group, self.shared = group, shared
        self.head, self.trainable = args["head"], args["trainable"]
        self.folder = ModelFolder(args["folder"], self.head)
        self.config = self.folder.config
        model, stored = self.folder.build()
        use_packed(model)
        self.routing = Routing.of(model)
        self.scored = Scored(model, self.head, lambda: group.tick())
        shard(self.scored, group, args["compute"], self.trainable)
        self.activations = Activations(self.scored.layers, self._free_bytes)
        self.state = State(model, stored, group, self.trainable)
        self.folder.load_base(self.state, group.tick)
        # Maps the number of a kept forward pass to its outputs.
        self.kept = {}

    def facts(self):
        return {
            "vocab": self.config.vocab_size,
            "maxPositions": self.config.max_position_embeddings,
            "labels": self.config.num_labels if self.head == "scores" else 1,
            "parameters": self.state.parameters,
            "outputs": [*outputs_of_head[self.head], *(self.routing.outputs if self.routing else [])],
            "experts": [self.routing.layers, self.routing.experts] if self.routing else None,
            "adapter": self.folder.adapter is not None,
        }

    def loadFolder(self, args):
        """The weights of a folder, without moments or steps. `newHead`: the head starts at 0."""
        self.folder.load(self.state, args["folder"], args["newHead"], self.group.tick)
        self.loaded({"steps": 0})

    def put(self, args):
        self.state.put(args["part"], args["dtype"], args["start"], self.shared.tensor(args["bytes"]))

    def get(self, args):
        self.state.get(args["part"], args["dtype"], args["start"], self.shared.tensor(args["bytes"]))

    def copy(self, args):
        for part in args["parts"]:
            self.state.copy(part["name"], part["dtype"], part["start"], COPY, self.group.tick)

    def loaded(self, args):
        self.state.steps = args["steps"]
        forget_gathered(self.scored)
        self.kept.clear()
        self.zeroGrads({})

    def forward(self, args):
        lane = args["lanes"][self.group.rank]
        keep = args["keep"]
        off = self.folder.adapter.off(self.scored.model) if args["base"] else nullcontext()
        with torch.set_grad_enabled(keep), off:
            outputs = self._score(lane, args)
        if lane is not None:
            for name, place in lane["outputs"].items():
                self.shared.tensor(place).copy_(outputs[name].reshape(place["shape"]))
        if keep:
            self.kept[args["pass"]] = {name: one for name, one in outputs.items() if one.requires_grad}

    def _free_bytes(self):
        """What is free beside the gradients, which the first backward pass of a step makes."""
        missing = sum(4 * piece.weights.numel() for piece in self.state.learning if piece.tensor.grad is None)
        return max(0, free_bytes(self.group) - missing)

    def _score(self, lane, args):
        """A rank without a micro-batch takes part with one token, since all ranks gather the layers together."""
        device = self.group.device
        if lane is None:
            tokens, lengths, rows = torch.zeros(1, dtype=torch.long), [1], torch.zeros(1, dtype=torch.long)
            targets = torch.zeros(1, dtype=torch.long)
        else:
            tokens = self.shared.tensor(lane["tokens"]).long()
            lengths = self.shared.tensor(lane["cuSeqlens"]).diff().tolist()
            rows = self.shared.tensor(lane["positions"]).long()
            targets = self.shared.tensor(lane["targets"]).long() if "targets" in lane else None
        positions = torch.cat([torch.arange(length) for length in lengths])
        pack = Pack.of(lengths, device)
        self.activations.begin(lambda: within(pack))
        with within(pack), self.routing.recorded() if self.routing else nullcontext():
            outputs = self.scored(
                tokens.to(device),
                positions.to(device),
                rows.to(device),
                None if targets is None else targets.to(device),
                args["temperature"],
                args["wants"],
                args.get("topK"),
            )
        if self.routing:
            outputs |= self.routing.of_pass(args["wants"])
        return outputs

    def backward(self, args):
        outputs = self.kept.pop(args["pass"])
        lane = args["lanes"][self.group.rank]
        roots, gradients = [], []
        for name, one in outputs.items():
            place = None if lane is None else lane.get(name)
            if place is None:
                continue
            roots.append(one)
            gradients.append(self.shared.tensor(place).to(one.device, copy=True).reshape(one.shape))
        if not roots:
            # The other ranks sum gradients: this one adds 0.
            one = next(iter(outputs.values()))
            roots, gradients = [one], [torch.zeros_like(one)]
        torch.autograd.backward(roots, gradients)

    def discard(self, args):
        self.kept.pop(args["pass"], None)

    def zeroGrads(self, _args):
        for piece in self.state.pieces:
            piece.tensor.grad = None

    def step(self, args):
        """
        AdamW as torch has it: w *= 1 - lr weightDecay; m, v: moments of the clipped gradient g;
        w -= lr / (1 - beta1^t) m / (sqrt(v) / sqrt(1 - beta2^t) + eps).
        """
        state = self.state
        learning = state.learning
        gradients = [piece.gradient for piece in learning]
        squares = torch.zeros((), dtype=torch.float64)
        for one in gradients:
            squares += one.double().square().sum().cpu()
        squares = squares.to(self.group.device)
        dist.all_reduce(squares)
        norm = float(squares.sqrt())
        if not math.isfinite(norm):
            self.zeroGrads({})
            return {"gradNorm": "NaN" if math.isnan(norm) else "Infinity", "taken": False}
        most = args["maxGradNorm"]
        if most > 0 and most / (norm + 1e-6) < 1:
            torch._foreach_mul_(gradients, most / (norm + 1e-6))
        steps = [torch.tensor(float(state.steps), device=self.group.device) for _ in gradients]
        adamw(
            [piece.weights for piece in learning],
            gradients,
            [piece.m for piece in learning],
            [piece.v for piece in learning],
            [],
            steps,
            fused=True,
            amsgrad=False,
            beta1=args["beta1"],
            beta2=args["beta2"],
            lr=args["lr"],
            weight_decay=args["weightDecay"],
            eps=args["eps"],
            maximize=False,
        )
        state.steps += 1
        forget_gathered(self.scored)
        self.zeroGrads({})
        return {"gradNorm": norm, "taken": True}

    def close(self, _args):
        dist.destroy_process_group()
