"""
Attention within a pack: the tokens of a sequence attend to those before them in their own sequence, each sequence by
itself. So its cost grows with the squares of the sequences' lengths, not with that of the pack, and no mask of the
whole pack exists. On a GPU in bf16 one kernel does it (torch.nn.attention.varlen); elsewhere one product for each
sequence. Which of the tokens before it a token sees is what transformers' own mask says (`Window`).
"""

import inspect
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from transformers import AttentionInterface
from transformers.masking_utils import AttentionMaskInterface

from .errors import InvalidInput
from .exchange import Shares
from .model import body_of

NAME = "petrel_packed"
# Types of layers in transformers' configs whose masks are none or a window, and others that keep to their mask.
BY_WINDOW = frozenset({"full_attention", "sliding_attention"})
BY_MASK = BY_WINDOW | {"chunked_attention", "indexed_attention", "minimax_m3_sparse"}
# Widest head of the kernel for packs, and what its widths are multiples of.
WIDEST, MULTIPLE = 256, 8


@dataclass(frozen=True)
class Pack:
    # Tokens of each sequence.
    lengths: list
    # [S + 1], where they begin and end.
    offsets: torch.Tensor
    # Where several ranks have shares of the tokens.
    shares: Shares | None = None

    @staticmethod
    def of(lengths, device, shares=None):
        offsets = torch.tensor([0, *lengths], dtype=torch.int32).cumsum(0, dtype=torch.int32)
        return Pack(lengths, offsets.to(device), shares)


_pack = ContextVar("pack")


@contextmanager
def within(pack):
    """Within it layers attend to the sequences of this pack."""
    token = _pack.set(pack)
    try:
        yield
    finally:
        _pack.reset(token)


@dataclass(frozen=True)
class Window:
    """
    What a layer gets for a mask: a token attends to itself and to the `tokens` - 1 before it. None: to all of them.
    """

    tokens: int


def use_packed(model, division):
    """
    Lets a model attend so, if its layers know flash attention, which takes no mask, and their masks are none or
    windows. Others keep their own attention, with a mask of the whole pack, which several ranks cannot share. Refuses
    models whose sequences would mix in a pack.
    """
    refuse_mixing(model)
    if (
        set(types_of(model)) <= BY_WINDOW
        and model._supports_flash_attn
        and model._supports_attention_backend
        and model.config._attn_implementation == "sdpa"
    ):
        model.set_attn_implementation(NAME)
        if division.sequence > 1:
            require_shares(model.config, division)
    elif division.sequence > 1:
        raise InvalidInput(
            f"a {type(model).__name__} attends by a mask of the whole pack, so its tokens cannot be divided. "
            "Expected trainer.ulysses_sequence_parallel_size=1"
        )


def require_shares(config, division):
    """Each rank attends with a share of the heads; heads of keys that are too few are repeated."""
    key = "trainer.ulysses_sequence_parallel_size"
    # Their frequencies follow from the longest sequence that a rank sees.
    stretched = rope_types(config) & {"dynamic", "longrope"}
    if stretched:
        raise InvalidInput(
            f"{key}={division.sequence}: a {config.model_type} with {min(stretched)} positions rotates by the length of "
            "the whole sequence, which a rank with a share of it does not know. Expected 1"
        )
    heads = config.num_attention_heads // division.tensor
    keys = (getattr(config, "num_key_value_heads", None) or config.num_attention_heads) // division.tensor
    ranks = division.sequence
    if heads % ranks or (keys % ranks and ranks % keys):
        of = "" if division.tensor == 1 else f" that each of {division.tensor} ranks has"
        raise InvalidInput(f"{key}={ranks} does not divide the {heads} heads and {keys} heads of keys{of}")


def rope_types(config):
    """The kinds of rotary positions that a model has, of all its types of layers."""
    found, waiting = set(), [getattr(config, "rope_parameters", None), getattr(config, "rope_scaling", None)]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            found |= {one[name] for name in ("rope_type", "type") if isinstance(one.get(name), str)}
            waiting += one.values()
    return found


def types_of(model):
    return getattr(model.config, "layer_types", None) or ()


def refuse_mixing(model):
    name, types = type(model).__name__, set(types_of(model))
    # A state beside attention is of no type of its own.
    strange = sorted(types - (BY_WINDOW if model._is_stateful else BY_MASK))
    if strange or (model._is_stateful and not types):
        raise InvalidInput(
            f"{name} has layers{f' of type {strange[0]}' if strange else ''} that carry a state from token to token; "
            "sequences side by side would get into each other's. Expected a model whose layers all attend"
        )
    if "position_ids" not in inspect.signature(body_of(model).forward).parameters:
        raise InvalidInput(
            f"{name} takes no positions of tokens, which tell the sequences of a pack apart. Expected a model that does"
        )
    if not getattr(model.config, "is_causal", True) or any(
        getattr(module, "is_causal", True) is False for module in model.modules()
    ):
        raise InvalidInput(
            f"{name} attends to later tokens, too: a token would be scored by itself. "
            "Expected a model whose tokens attend to earlier ones"
        )


def mask_of(*_args, local_size=None, use_vmap=False, config=None, **_others):
    """What transformers makes of a layer's mask. `local_size`: its window; `use_vmap`: it is made by a function."""
    if use_vmap:
        raise InvalidInput(f"a {config.model_type} attends by a mask of its own, which packs do not have")
    return None if local_size is None else Window(local_size)


def attend(module, query, key, value, attention_mask, scaling=None, **others):
    """query [1, heads, N, D], key [1, keyHeads, N, D], value [1, keyHeads, N, V] -> [1, N, heads, V], None"""
    unknown = sorted({"softcap", "s_aux", "position_bias"} & {name for name, one in others.items() if one is not None})
    if isinstance(attention_mask, torch.Tensor):
        unknown.append("a mask of its own")
    if unknown:
        raise InvalidInput(f"{type(module).__name__} attends with {unknown[0]}, which packs do not have")
    attention = _by_kernel if fits_kernel(query, value, scaling) else _by_sequence
    window = None if attention_mask is None else attention_mask.tokens
    pack = _pack.get()
    if pack.shares is None:
        return attention(pack, query, key, value, scaling, window), None
    query, key, value = (pack.shares.to_heads(one) for one in (query, key, value))
    return pack.shares.to_tokens(attention(pack, query, key, value, scaling, window)), None


def fits_kernel(query, value, scaling):
    """Whether the kernel for packs takes it: bf16 on a GPU of compute capability 8 or more, within its widths."""
    width = query.shape[3]
    return (
        query.device.type == "cuda"
        and query.dtype == torch.bfloat16
        and width <= WIDEST
        and width % MULTIPLE == 0
        and value.shape[3] <= width
        and (scaling is None or scaling > 0)
        and torch.cuda.get_device_capability(query.device) >= (8, 0)
    )


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
AttentionMaskInterface.register(NAME, mask_of)
