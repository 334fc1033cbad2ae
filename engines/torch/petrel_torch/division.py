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
    # Their type: fp32 or bf16.
    state: str = "fp32"

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
            "trainer.expert_model_parallel_size. Expected 1 with model.lora_rank or model.lora_adapter_path"
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


def summed(tensor, group):
    """The sum over the ranks of a group; the tensor itself without one."""
    if group is not None:
        dist.all_reduce(tensor, group=group)
    return tensor
