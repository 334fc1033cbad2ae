"""
Where the tensors of a Hugging Face folder lie in transformers' parameters. In memory, a layer's experts are one tensor
and gate and up projections are joined; in files each has a name of its own.
"""

from dataclasses import dataclass

import torch
from torch.overrides import TorchFunctionMode
from transformers.core_model_loading import revert_weight_conversion

from .errors import InvalidInput


@dataclass(frozen=True)
class Stored:
    """A tensor of a folder: elements [first, first + elements) of the tensor `source` in memory."""

    name: str
    shape: tuple
    source: str
    first: int

    @property
    def elements(self):
        count = 1
        for size in self.shape:
            count *= size
        return count


def held(model):
    """name -> tensor in memory, of all that a folder has: each parameter once, and the buffers that are saved."""
    parameters = dict(model.named_parameters())
    saved = model.state_dict(keep_vars=True)
    buffers = {name: one for name, one in model.named_buffers() if name in saved and one.is_floating_point()}
    return {**parameters, **buffers}


class WithoutCopies(TorchFunctionMode):
    """`contiguous` gives the tensor itself, so that a part of one still says where it lies."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        return args[0] if func is torch.Tensor.contiguous else func(*args, **(kwargs or {}))


def stored_tensors(model):
    """What a folder of the model has, names ascending."""
    # transformers' own way back to files, on tensors without memory: what it gives are views that say where they lie.
    empty = {name: torch.empty(one.shape, dtype=one.dtype, device="meta") for name, one in held(model).items()}
    sources = {one.untyped_storage()._cdata: name for name, one in empty.items()}
    found = []
    with WithoutCopies():
        stored = revert_weight_conversion(model, dict(empty))
    for name, view in stored.items():
        source = sources.get(view.untyped_storage()._cdata)
        if source is None or not view.is_contiguous():
            raise InvalidInput(f"{name} of a {type(model).__name__} does not lie in one piece in memory")
        found.append(Stored(name, tuple(view.shape), source, view.storage_offset()))
    return sorted(found, key=lambda one: one.name)
