"""
What a forward pass keeps for its backward pass. The activations of a layer are kept while there is memory for them;
those of the layers after that are computed again in the backward pass, from the layer's input, to the same bits.
"""

from contextlib import nullcontext

import torch
from torch.autograd.graph import saved_tensors_hooks
from torch.utils.checkpoint import checkpoint

from .segments import local

# Of the memory that is free, what the activations of one pass may take. The rest is for what layers need in between.
SHARE = 0.5


class Activations:
    def __init__(self, layers, free, agreed=lambda amount: amount, nested=()):
        """
        `free()`: bytes that a pass may count on, half of which it takes. `agreed(bytes)`: the most that any of the
        ranks says that compute a layer together; what one computes again all do. `nested`: modules within layers that
        FSDP2 gathers by themselves: their weights are not there yet when their layer begins.
        """
        self.kept = None
        for module in nested:
            module.register_forward_pre_hook(self._weights_are_there)
        self.free, self.agreed = free, agreed
        self.left, self.largest = 0, 0
        self.surroundings = nullcontext
        # Layers of the last pass whose activations are computed again.
        self.again = 0
        for layer in layers:
            layer.forward = self._sparing(layer.forward, layer)

    def begin(self, surroundings=nullcontext):
        """A pass begins. `surroundings()`: the context in which its layers are computed, again, too."""
        self.left, self.largest, self.again = -self.agreed(-SHARE * self.free()), 0, 0
        self.surroundings = surroundings

    def _sparing(self, forward, layer):
        """
        The first layer is kept and measured. Each later one is kept if there is room for the largest one so far, since
        layers may differ: mixtures of experts begin with dense ones.
        """

        def kept_or_again(*args, **kwargs):
            if not torch.is_grad_enabled():
                return forward(*args, **kwargs)
            if self.largest > self.left:
                self.again += 1
                around = self.surroundings
                return checkpoint(
                    forward,
                    *args,
                    use_reentrant=False,
                    preserve_rng_state=False,
                    context_fn=lambda: (nullcontext(), around()),
                    **kwargs,
                )
            kept = self.kept = Kept(layer)
            with saved_tensors_hooks(kept.pack, kept.unpack):
                out = forward(*args, **kwargs)
            self.kept = None
            bytes_ = self.agreed(kept.bytes)
            self.left -= bytes_
            self.largest = max(self.largest, bytes_)
            return out

        return kept_or_again


    def _weights_are_there(self, module, _args):
        if self.kept is not None:
            self.kept.without(module)


class Kept:
    """Counts the bytes that autograd keeps of one layer, without its weights, each block of memory once."""

    def __init__(self, layer):
        self.seen, self.bytes = set(), 0
        self.without(layer)

    def without(self, module):
        """Its weights do not count."""
        self.seen |= {local(parameter).untyped_storage().data_ptr() for parameter in module.parameters()}

    def pack(self, tensor):
        storage = local(tensor).untyped_storage()
        if storage.data_ptr() not in self.seen:
            self.seen.add(storage.data_ptr())
            self.bytes += storage.nbytes()
        # The tensor itself would keep its graph alive when the pass is discarded.
        return tensor.detach()

    @staticmethod
    def unpack(tensor):
        return tensor
