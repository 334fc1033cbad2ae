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
from .layers import layers_of

# What stands for a module or a parameter of experts in transformers' plans.
DISPATCH = "ep_dispatch_experts"
# The style of what all ranks have and use for their own heads. transformers sums its gradients in the type of products.
OF_HEADS = "replicated_with_grad_allreduce"
OF_EXPERTS = {DISPATCH, "grouped_gemm"}


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
        # All ranks, on their processors: for what they must agree on while their devices compute.
        self.hosts = None if division.is_plain else dist.new_group(backend="gloo")
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


@dataclass(frozen=True)
class Divided:
    # Modules of experts that are divided: FSDP2 divides what is left over other ranks than the rest of their layers.
    experts: list
    # Names of parameters that all ranks have, of whose gradients each has a part.
    partial: frozenset


def divide(model, meshes, adapter, trainable):
    """
    Divides the matrices and experts of a model without weights by transformers' own plans. A model that does not learn
    may have no experts: the policy has them.
    """
    division = meshes.division
    if not trainable and not any(hasattr(module, "num_experts") for module in model.modules()):
        division = replace(division, experts=1)
    if division.tensor == division.experts == 1:
        return Divided([], frozenset())
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
    modules, partial = dict(model.named_modules()), frozenset()
    if division.tensor > 1:
        require_heads(model.config, division.tensor, "trainer.tensor_model_parallel_size")
        # Embedding and head are divided by FSDP2 alone: what a head gives is computed in chunks of all words.
        layers = [f"{key}." for key, module in modules.items() if module in set(layers_of(model))]
        matrices = {key: style for key, style in matrices.items() if key.startswith(tuple(layers))}
        if not matrices and division.experts == 1:
            raise InvalidInput(f"transformers has no plan that divides the matrices of a {name}")
        of_heads = norms_of_heads(modules, matrices)
        matrices = {key: style for key, style in matrices.items() if style != OF_HEADS}
        apply_tensor_parallelism(model, meshes.dense["tensor"], matrices)
        # A plan names modules and their parameters.
        partial = frozenset(
            name for name, _ in model.named_parameters() if name in of_heads or name.rpartition(".")[0] in of_heads
        )
    if division.experts == 1:
        return Divided([], partial)
    if DISPATCH not in experts.values() or not set(experts.values()) <= OF_EXPERTS:
        raise InvalidInput(f"transformers has no plan that divides the experts of a {name} alone")
    divided = [modules[key] for key, style in experts.items() if style == DISPATCH]
    for module in divided:
        if module.num_experts % division.experts:
            raise InvalidInput(
                f"trainer.expert_model_parallel_size={division.experts} does not divide the {module.num_experts} "
                f"experts of a {name}"
            )
    same = meshes.dense["tensor"] if division.tensor > 1 else alone(meshes.all)
    apply_expert_parallelism(model, meshes.sparse["experts"], same, experts, "all_to_all")
    return Divided(divided, partial)


def norms_of_heads(modules, matrices):
    """
    Norms of queries and keys by head, also those that a plan forgets: all ranks have such a norm, and each meets its
    own heads alone.
    """
    found = {key for key, style in matrices.items() if style == OF_HEADS}
    for key, style in matrices.items():
        at, _, name = key.rpartition(".")
        if style != "colwise" or name not in ("q_proj", "k_proj"):
            continue
        for norm in (f"{at}.{name[0]}_{kind}" for kind in ("norm", "layernorm")):
            if norm not in modules:
                continue
            if any(one.ndim > 1 for one in modules[norm].parameters()):
                raise InvalidInput(f"{norm} has weights for each head, which are not divided with the heads")
            found.add(norm)
    return found


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


def summed(tensor, group):
    """The sum over the ranks of a group; the tensor itself without one."""
    if group is not None:
        dist.all_reduce(tensor, group=group)
    return tensor
