"""
How the ranks of a group share a model and its work. From the outside in: lanes, each with a micro-batch of its own; in
a lane `sequence` shares of its tokens (Ulysses: Jacobs et al. 2023); for each of these `tensor` ranks that have a part
of every matrix of a layer. Rank r is at (lane, sequence, tensor), the last one fastest. Experts are divided over
`experts` ranks that follow one another, whatever their lanes. What is left of each division is divided by FSDP2.
"""

from dataclasses import dataclass, replace

import torch
import torch.distributed as dist
import transformers
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor

from .errors import InvalidInput

# What stands for a module or a parameter of experts in transformers' plans.
DISPATCH = "ep_dispatch_experts"


@dataclass(frozen=True)
class Division:
    rank: int
    ranks: int
    sequence: int = 1
    tensor: int = 1
    experts: int = 1
    # Weights, gradients and moments lie in the machine's memory.
    offload: bool = False

    @property
    def lanes(self):
        return self.ranks // (self.sequence * self.tensor)

    @property
    def lane(self):
        return self.rank // (self.sequence * self.tensor)

    @property
    def share(self):
        """Which share of its lane's tokens the rank has."""
        return self.rank // self.tensor % self.sequence

    @property
    def speaks(self):
        """Of the ranks with the same tokens, one gives what they all have."""
        return self.rank % self.tensor == 0

    @property
    def is_plain(self):
        """Ranks compute a layer without each other."""
        return self.sequence == self.tensor == self.experts == 1


class Meshes:
    """The groups of torch's that a division has."""

    def __init__(self, kind, division):
        self.division = division
        # What is divided by FSDP2 alone, and the rest of a model beside its layers.
        self.all = init_device_mesh(kind, (division.ranks,))
        # [ranks that divide a layer by FSDP2, ranks that divide its matrices]
        self.dense = self.all
        if division.tensor > 1:
            shape = (division.ranks // division.tensor, division.tensor)
            self.dense = init_device_mesh(kind, shape, mesh_dim_names=("data", "tensor"))
        # [ranks with the same experts, ranks that divide them]
        self.sparse = None
        if division.experts > 1:
            shape = (division.ranks // division.experts, division.experts)
            self.sparse = init_device_mesh(kind, shape, mesh_dim_names=("copies", "experts"))
        # Ranks that have shares of the same tokens.
        self.sequence = None
        if division.sequence > 1:
            shape = (division.lanes, division.sequence, division.tensor)
            lanes = init_device_mesh(kind, shape, mesh_dim_names=("lane", "sequence", "tensor"))
            self.sequence = lanes["sequence"].get_group()

    @property
    def layers(self):
        return self.dense if self.division.tensor == 1 else self.dense["data"]

    @property
    def tensor(self):
        """The group of ranks that divide matrices; None where none are divided."""
        return None if self.division.tensor == 1 else self.dense["tensor"].get_group()


def divide(model, meshes, adapter, trainable):
    """
    Divides the matrices and experts of a model without weights by transformers' own plans. Gives the modules of divided
    experts, which FSDP2 divides over other ranks than the rest of their layers. A model that does not learn may have
    none: the policy has them.
    """
    division = meshes.division
    if not trainable and not any(hasattr(module, "num_experts") for module in model.modules()):
        division = replace(division, experts=1)
    if division.tensor == division.experts == 1:
        return []
    name = type(model).__name__
    if adapter:
        raise InvalidInput(
            f"the layers of a {name} with an adapter cannot be divided by trainer.tensor_model_parallel_size or "
            "trainer.expert_model_parallel_size. Expected 1 with model.lora_rank or lora.path"
        )
    try:
        # Imported here: older versions of transformers, which sample and train undivided, do not have them.
        from transformers.distributed import DistributedConfig
        from transformers.distributed.expert_parallel import apply_expert_parallelism
        from transformers.distributed.tensor_parallel import apply_tensor_parallelism
    except ImportError as error:
        raise InvalidInput(
            f"layers are divided by transformers 5.24 or newer, not by {transformers.__version__}: {error}"
        ) from error
    whole = DistributedConfig(
        tp_size=division.tensor, ep_size=division.experts, fsdp_size=division.ranks // division.tensor
    )
    try:
        matrices, experts, _ = model._resolve_parallel_plans(whole)
    except ValueError as error:
        raise InvalidInput(f"transformers does not divide a {name}: {error}") from error
    if division.tensor > 1:
        require_heads(model.config, division.tensor, "trainer.tensor_model_parallel_size")
        # Embedding and head are divided by FSDP2 alone: what a head gives is computed in chunks of all words.
        inside = f"{model.base_model_prefix}.layers."
        matrices = {key: style for key, style in matrices.items() if key.startswith(inside)}
        apply_tensor_parallelism(model, meshes.dense["tensor"], matrices)
    if division.experts == 1:
        return []
    if DISPATCH not in experts.values():
        raise InvalidInput(f"transformers does not divide the experts of a {name}")
    modules = dict(model.named_modules())
    divided = [modules[key] for key, style in experts.items() if style == DISPATCH]
    for module in divided:
        if module.num_experts % division.experts:
            raise InvalidInput(
                f"trainer.expert_model_parallel_size={division.experts} does not divide the {module.num_experts} "
                f"experts of a {name}"
            )
    same = meshes.dense["tensor"] if division.tensor > 1 else alone(meshes.all)
    apply_expert_parallelism(model, meshes.sparse["experts"], same, experts, "all_to_all")
    return divided


def alone(mesh):
    """A mesh of each rank by itself."""
    return init_device_mesh(mesh.device_type, (mesh.size(), 1), mesh_dim_names=("each", "alone"))["alone"]


def require_heads(config, ranks, key):
    heads = config.num_attention_heads
    keys = getattr(config, "num_key_value_heads", None) or heads
    for count, what in ((heads, "heads"), (keys, "heads of keys and values")):
        if count % ranks:
            raise InvalidInput(f"{key}={ranks} does not divide the {count} {what} of a {config.model_type}")


def local(tensor):
    """What this rank has of a tensor that is divided."""
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


@dataclass(frozen=True)
class Segment:
    """Elements [start, start + elements) of a whole tensor, which a rank has from `first` of its own on."""

    start: int
    elements: int
    first: int


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
    """What lies in one piece, in the order of the rank's own elements, which is that of the whole tensor."""
    inner, dims = 1, len(shape)
    while dims > 0 and spans[dims - 1] == [(0, shape[dims - 1])]:
        dims -= 1
        inner *= shape[dims]
    found = [0]
    # Starts of the outer dimensions' slices, then ranges of the innermost one that is divided.
    for dim in range(dims - 1):
        stride = inner
        for size in shape[dim + 1 : dims]:
            stride *= size
        found = [base + index * stride for base in found for start, end in spans[dim] for index in range(start, end)]
    ranges = spans[dims - 1] if dims > 0 else [(0, 1)]
    segments, first = [], 0
    for base in found:
        for start, end in ranges:
            segments.append(Segment(base + start * inner, (end - start) * inner, first))
            first += (end - start) * inner
    return [one for one in segments if one.elements > 0]


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


def summed(tensor, group):
    """The sum over the ranks of a group; the tensor itself without one."""
    if group is not None:
        dist.all_reduce(tensor, group=group)
    return tensor
