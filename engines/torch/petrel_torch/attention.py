"""
Attention within a pack: the tokens of a sequence attend to those before them in their own sequence, each sequence by
itself. So its cost grows with the squares of the sequences' lengths, not with that of the pack, and no mask of the whole
pack exists. On a GPU in bf16 one kernel does it (torch.nn.attention.varlen); elsewhere one product for each sequence.
"""

from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from transformers import AttentionInterface
from transformers.masking_utils import AttentionMaskInterface

from .errors import InvalidInput

NAME = "petrel_packed"


@dataclass(frozen=True)
class Pack:
    # Tokens of each sequence.
    lengths: list
    # [S + 1], where they begin and end.
    offsets: torch.Tensor

    @staticmethod
    def of(lengths, device):
        offsets = torch.tensor([0, *lengths], dtype=torch.int32).cumsum(0, dtype=torch.int32)
        return Pack(lengths, offsets.to(device))


_pack = ContextVar("pack")


@contextmanager
def within(pack):
    """Within it layers attend to the sequences of this pack."""
    token = _pack.set(pack)
    try:
        yield
    finally:
        _pack.reset(token)


def use_packed(model):
    """
    Lets a model attend so, if its layers say by arguments what they attend to: those that know flash attention do, which
    takes no mask. Others keep their own attention, with a mask of the whole pack.
    """
    if model._is_stateful:
        raise InvalidInput(
            f"{type(model).__name__} has layers that carry a state from token to token; "
            "sequences side by side would get into each other's"
        )
    if model._supports_flash_attn and model._supports_attention_backend and model.config._attn_implementation == "sdpa":
        model.set_attn_implementation(NAME)


def attend(module, query, key, value, _mask, scaling=None, dropout=0.0, sliding_window=None, **others):
    """query [1, heads, N, D], key [1, keyHeads, N, D], value [1, keyHeads, N, V] -> [1, N, heads, V], None"""
    unknown = sorted({"softcap", "s_aux", "position_bias"} & {name for name, one in others.items() if one is not None})
    if unknown:
        raise InvalidInput(f"{type(module).__name__} attends with {unknown[0]}, which packs do not have")
    attention = _by_kernel if query.device.type == "cuda" and query.dtype == torch.bfloat16 else _by_sequence
    return attention(_pack.get(), query, key, value, scaling, sliding_window), None


def _by_sequence(pack, query, key, value, scaling, window):
    groups = query.shape[1] // key.shape[1]
    if groups > 1:
        key, value = (one.repeat_interleave(groups, dim=1) for one in (key, value))
    made = []
    for q, k, v in zip(*(one.split(pack.lengths, dim=2) for one in (query, key, value)), strict=True):
        tokens = q.shape[2]
        band = None if window is None or tokens <= window else _band(tokens, window, q.device)
        made.append(F.scaled_dot_product_attention(q, k, v, attn_mask=band, is_causal=band is None, scale=scaling))
    return torch.cat(made, dim=2).transpose(1, 2).contiguous()


def _band(tokens, window, device):
    """[tokens, tokens]: a token attends to itself and to the `window` - 1 tokens before it."""
    whole = torch.ones(tokens, tokens, dtype=torch.bool, device=device)
    return whole.tril() & whole.triu(1 - window)


def _by_kernel(pack, query, key, value, scaling, window):
    from torch.nn.attention.varlen import varlen_attn

    width = value.shape[3]
    # Values narrower than keys (multi-head latent attention) are padded, as transformers does for flash attention.
    if width < key.shape[3]:
        value = F.pad(value, [0, key.shape[3] - width])
    q, k, v = (one.squeeze(0).transpose(0, 1).contiguous() for one in (query, key, value))
    longest = max(pack.lengths)
    made = varlen_attn(
        q,
        k,
        v,
        pack.offsets,
        pack.offsets,
        longest,
        longest,
        scale=scaling,
        window_size=(-1 if window is None else window - 1, 0),
        enable_gqa=q.shape[1] != k.shape[1],
    )
    return made[..., :width].unsqueeze(0)


AttentionInterface.register(NAME, attend)
AttentionMaskInterface.register(NAME, lambda *_args, **_kwargs: None)
