"""The calls of a model that scores tokens and, when trainable, learns: core/ports/policy.ts."""

import math
from contextlib import nullcontext
from dataclasses import dataclass

import torch
import torch.distributed as dist

from .activations import Activations
from .attention import Pack, use_packed, within
from .device import free_bytes
from .division import divide, summed
from .errors import InvalidInput
from .exchange import Shares, bounds_of
from .folder import ModelFolder
from .model import Scored, forget_gathered, narrow, shard
from .optimizer import update
from .routing import Routing
from .state import State

# Descriptor of the memory for a copy of the state.
COPY = 5

outputs_of_head = {
    "tokens": ["logProbs", "entropy", "sumPiSquared", "logits", "topTokens", "topLogProbs"],
    "values": ["values"],
    "scores": ["scores"],
}

# Outputs that a micro-batch has once, not at each row.
OF_A_PASS = frozenset({"expertTokens", "routerLoss"})


@dataclass(frozen=True)
class Work:
    """What a rank computes of its lane's micro-batch: its tokens, and the rows that lie among them."""

    pack: Pack
    tokens: torch.Tensor
    positions: torch.Tensor
    rows: torch.Tensor
    targets: torch.Tensor | None
    # Which of the lane's rows these are.
    mine: torch.Tensor | slice
    # How many of the tokens belong to the micro-batch: the first ones.
    given: int


def positions_of(lengths):
    return torch.cat([torch.arange(length) for length in lengths])


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
        self.division = group.meshes.division
        self.head, self.trainable = args["head"], args["trainable"]
        self.folder = ModelFolder(args["folder"], self.head)
        self.config = self.folder.config
        model, stored = self.folder.build()
        if self.division.state == "bf16":
            narrow(model)
        use_packed(model, self.division)
        self.routing = Routing.of(model)
        self.divided = divide(model, group.meshes, self.folder.adapter is not None, self.trainable)
        self.scored = Scored(model, self.head, lambda: group.tick())
        shard(self.scored, group, args["compute"], self.trainable, self.divided.experts)
        self.activations = Activations(self.scored.layers, self._free_bytes, self._agreed, self.divided.experts)
        self.state = State(model, stored, group, self.trainable)
        odd = [one.name for one in self.state.learning if one.holders not in (1, self.division.tensor)]
        if odd:
            raise InvalidInput(f"{odd[0]} is divided in a way that no sum of its gradients is known for")
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
        lane = args["lanes"][self.division.lane]
        keep = args["keep"]
        off = self.folder.adapter.off(self.scored.model) if args["base"] else nullcontext()
        work = self._work(lane)
        with torch.set_grad_enabled(keep), off:
            outputs = self._score(work, args)
        if lane is not None and self.division.speaks:
            for name, place in lane["outputs"].items():
                if name not in OF_A_PASS:
                    self.shared.tensor(place)[work.mine] = outputs[name].cpu()
                elif self.division.share == 0:
                    self.shared.tensor(place).copy_(outputs[name])
        if keep:
            kept = {name: one for name, one in outputs.items() if one.requires_grad}
            self.kept[args["pass"]] = kept, work.mine

    def _free_bytes(self):
        """What is free beside the gradients, which the first backward pass of a step makes."""
        missing = sum(
            piece.weights.nbytes
            for piece in self.state.learning
            if piece.tensor.grad is None and piece.weights.device == self.group.device
        )
        return max(0, free_bytes(self.group) - missing)

    def _work(self, lane):
        """A rank without a micro-batch takes part with one token, since all ranks gather the layers together."""
        if lane is None:
            zeros = torch.zeros(1, dtype=torch.long)
            return self._share(zeros, [1], zeros, zeros)
        return self._share(
            self.shared.tensor(lane["tokens"]).long(),
            self.shared.tensor(lane["cuSeqlens"]).diff().tolist(),
            self.shared.tensor(lane["positions"]).long(),
            self.shared.tensor(lane["targets"]).long() if "targets" in lane else None,
        )

    def _share(self, tokens, lengths, rows, targets):
        """What this rank computes of a micro-batch; where several share one, each has at least a token."""
        ranks, device = self.division.sequence, self.group.device
        given = tokens.shape[0]
        if ranks == 1:
            return Work(Pack.of(lengths, device), tokens, positions_of(lengths), rows, targets, slice(None), given)
        more = max(0, ranks - given)
        lengths = lengths + [1] * more
        tokens = torch.cat([tokens, torch.zeros(more, dtype=torch.long)])
        bounds = bounds_of(given + more, ranks)
        start, end = bounds[self.division.share]
        shares = Shares([last - first for first, last in bounds], self.division.share, self.group.meshes.sequence)
        mine = ((rows >= start) & (rows < end)).nonzero().squeeze(1)
        return Work(
            Pack.of(lengths, device, shares),
            tokens[start:end],
            positions_of(lengths)[start:end],
            rows[mine] - start,
            None if targets is None else targets[mine],
            mine,
            max(0, min(end, given) - start),
        )

    def _score(self, work, args):
        device = self.group.device
        self.activations.begin(lambda: within(work.pack))
        with within(work.pack), self.routing.recorded() if self.routing else nullcontext():
            outputs = self.scored(
                work.tokens.to(device),
                work.positions.to(device),
                work.rows.to(device),
                None if work.targets is None else work.targets.to(device),
                args["temperature"],
                args["wants"],
                args.get("topK"),
            )
        if self.routing:
            outputs |= self.routing.of_pass(args["wants"], work.given, self._over_shares)
        return outputs

    def _over_shares(self, tensor):
        return summed(tensor, self.group.meshes.sequence)

    def _agreed(self, bytes_):
        """The most that any rank says, where ranks compute layers together."""
        if self.division.is_plain:
            return bytes_
        most = torch.tensor(float(bytes_))
        dist.all_reduce(most, dist.ReduceOp.MAX, group=self.group.meshes.hosts)
        return float(most)

    def backward(self, args):
        outputs, mine = self.kept.pop(args["pass"])
        lane = args["lanes"][self.division.lane]
        roots, gradients = [], []
        for name, one in outputs.items():
            place = None if lane is None else lane.get(name)
            if place is None:
                continue
            gradient = self.shared.tensor(place)[slice(None) if name in OF_A_PASS else mine]
            roots.append(one)
            gradients.append(gradient.to(one.device, copy=True).reshape(one.shape))
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
        state = self.state
        learning = state.learning
        gradients = [piece.gradient for piece in learning]
        squares = torch.zeros((), dtype=torch.float64)
        self._level(learning, gradients)
        for piece, one in zip(learning, gradients, strict=True):
            squares += one.double().square().sum().cpu() / piece.holders
        squares = squares.to(self.group.device)
        dist.all_reduce(squares)
        norm = float(squares.sqrt())
        if not math.isfinite(norm):
            self.zeroGrads({})
            return {"gradNorm": "NaN" if math.isnan(norm) else "Infinity", "taken": False}
        most = args["maxGradNorm"]
        update(state, gradients, min(1, most / (norm + 1e-6)) if most > 0 else 1, args)
        state.steps += 1
        forget_gathered(self.scored)
        self.zeroGrads({})
        return {"gradNorm": norm, "taken": True}

    def _level(self, pieces, gradients):
        """
        Ranks that have the same piece take the mean of their gradients, so that it stays the same to the bit; the sum
        where each has a part of them.
        """
        group = self.group.meshes.tensor
        for piece, gradient in zip(pieces, gradients, strict=True):
            if piece.holders > 1:
                # Collectives take what lies on the device, which an offloaded gradient does not.
                total = summed(gradient.to(self.group.device, torch.float32), group)
                gradient.copy_(total if piece.name in self.divided.partial else total / piece.holders)

    def close(self, _args):
        dist.destroy_process_group()
