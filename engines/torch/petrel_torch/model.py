"""
A model of transformers with its head, sharded over the ranks of a group: one unit for each layer and one for the rest.
"""

from contextlib import contextmanager

import torch
from torch import nn
from torch.distributed.fsdp import CPUOffloadPolicy, FSDPModule, MixedPrecisionPolicy, OffloadPolicy, fully_shard
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
)

from .errors import InvalidInput
from .head import HeadOutputs, LogitForm
from .layers import layers_of

classes = {
    "tokens": AutoModelForCausalLM,
    "values": AutoModelForTokenClassification,
    "scores": AutoModelForSequenceClassification,
}


def read_config(folder, head):
    try:
        config = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except (ValueError, KeyError, OSError) as error:
        raise InvalidInput(f"transformers cannot read the config of {folder}: {error}") from error
    classifies = any(name.endswith("ForSequenceClassification") for name in config.architectures or [])
    config = config.get_text_config()
    # transformers' default is two labels.
    if head == "values" or (head == "scores" and not classifies):
        config.num_labels = 1
    config.use_cache = False
    return config


def attention_of(config, kind):
    """transformers' own; where scores are capped, or take part with sinks beside them, only its plain form does it."""
    plain = getattr(config, "attn_logit_softcapping", None) or not getattr(kind, "_supports_sdpa", True)
    return "eager" if plain else "sdpa"


def build(folder, head, config):
    """The model without weights: its parameters take no memory, its buffers have their values."""
    try:
        with parameters_on_meta():
            kind = classes[head]._model_mapping.get(type(config), None)
            model = classes[head].from_config(
                config,
                dtype=torch.float32,
                attn_implementation=attention_of(config, kind),
                experts_implementation="eager",
            )
    except (ValueError, KeyError) as error:
        raise InvalidInput(f"transformers has no model for {folder} with a head of {head}: {error}") from error
    model.tie_weights()
    # No dropout: a policy's log-probs are those of the model as it samples.
    model.eval()
    return model


@contextmanager
def parameters_on_meta():
    register = nn.Module.register_parameter

    def without_memory(module, name, parameter):
        register(module, name, parameter)
        if parameter is not None and parameter.device.type != "meta":
            module._parameters[name] = nn.Parameter(parameter.to("meta"), parameter.requires_grad)

    nn.Module.register_parameter = without_memory
    try:
        yield
    finally:
        nn.Module.register_parameter = register


def narrow(model):
    """Keeps the parameters of a model without weights in bf16; its buffers stay as they are."""
    for parameter in model.parameters():
        parameter.data = parameter.data.to(torch.bfloat16)


class Scored(nn.Module):
    """A model whose forward pass gives the port's outputs at chosen rows of a pack."""

    def __init__(self, model, head, tick):
        super().__init__()
        self.model = model
        self.head = head
        self.form = LogitForm.of(model.config)
        self.layers = layers_of(model)
        for layer in self.layers:
            layer.register_forward_hook(lambda *_: tick())

    def forward(self, tokens, positions, rows, targets, temperature, wants, top_k):
        """
        tokens, positions [N]: a pack, in which each sequence starts at position 0; rows [P]: indices into it; targets
        [P] or None. Gives {name: tensor}.
        """
        hidden = body_of(self.model)(
            input_ids=tokens[None], position_ids=positions[None], attention_mask=None, use_cache=False
        ).last_hidden_state[0]
        hidden = hidden.index_select(0, rows)
        if self.head != "tokens":
            out = head_of(self.model)(hidden).float()
            return {"values": out.squeeze(-1)} if self.head == "values" else {"scores": out}
        head = self.model.get_output_embeddings()
        log_probs, entropy, others = HeadOutputs.apply(
            hidden, head.weight, head.bias, targets, temperature, self.form, frozenset(wants), top_k
        )
        return {"logProbs": log_probs, "entropy": entropy, **others}


def body_of(model):
    """The model below its head. Some of transformers' models say that they are their own (llama4)."""
    return model.model if model.base_model is model else model.base_model


def head_of(model):
    """The layer on top of a classifier; transformers' models call it `score` or `classifier`."""
    return model.score if hasattr(model, "score") else model.classifier


def shard(scored, group, compute, trainable, experts):
    """
    FSDP2: what a rank has of a parameter is divided by its first dimension; products are in `compute`, sums of
    gradients in fp32. `experts`: modules of experts that are divided over ranks already.
    """
    if not trainable:
        scored.requires_grad_(False)
    policy = MixedPrecisionPolicy(
        param_dtype=torch.bfloat16 if compute == "bf16" else torch.float32,
        reduce_dtype=torch.float32,
        cast_forward_inputs=False,
    )
    buffers = {name: buffer.clone() for name, buffer in scored.named_buffers()}
    meshes = group.meshes
    # Ranks that divide matrices have the same gradients of the rest.
    rest = meshes.division.tensor
    units = [(one, meshes.sparse["copies"], 1) for one in experts]
    units += [*((layer, meshes.layers, 1) for layer in scored.layers), (scored, meshes.all, rest)]
    on_device = group.device.type == "cuda"
    offload = CPUOffloadPolicy(pin_memory=on_device) if meshes.division.offload else OffloadPolicy()
    for unit, mesh, _ in units:
        fully_shard(unit, mesh=mesh, mp_policy=policy, offload_policy=offload)
    for unit, _, same in units:
        # Coefficients carry the normalisation of a batch: gradients are summed, not averaged. gloo knows no other sum.
        unit.set_gradient_divide_factor(float(same))
        unit.set_force_sum_reduction_for_comms(True)
    scored.to_empty(device="cpu" if meshes.division.offload else group.device)
    for name, buffer in scored.named_buffers():
        buffer.data = buffers[name].to(group.device)


def forget_gathered(scored):
    """
    The weights have changed: FSDP2 keeps what it gathered for a pass without a backward one, and would use it again.
    """
    for module in scored.modules():
        if isinstance(module, FSDPModule):
            module.reshard()
