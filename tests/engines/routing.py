"""
A step of mixtures of experts with their auxiliary loss, beside the same step of transformers' own model. Prints a JSON
object per model. `routing.py <folder of engines/torch> <folder for files>`.
"""

import json
import os
import sys

sys.path.insert(0, sys.argv[1])
os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")

import torch  # noqa: E402
from petrel_torch import device  # noqa: E402
from petrel_torch.training import Training  # noqa: E402
from petrel_torch.trial import MODEL, Arrays, fill, place  # noqa: E402
from transformers import AutoConfig, AutoModelForCausalLM  # noqa: E402
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING  # noqa: E402

TOKENS, COEFFICIENT, EXPERTS, CHOSEN = 48, 0.3, 4, 2
COMMON = {**MODEL, "moe_intermediate_size": 96, "num_experts_per_tok": CHOSEN, "router_aux_loss_coef": COEFFICIENT}
# With the names of their sizes; of the last one transformers has no auxiliary loss.
MODELS = {
    "mixtral": ("MixtralForCausalLM", {"num_local_experts": EXPERTS}),
    "qwen2_moe": ("Qwen2MoeForCausalLM", {"num_experts": EXPERTS, "shared_expert_intermediate_size": 96}),
    # Its first layer is dense.
    "qwen3_moe": ("Qwen3MoeForCausalLM", {"num_experts": EXPERTS, "mlp_only_layers": [0]}),
    "olmoe": ("OlmoeForCausalLM", {"num_experts": EXPERTS, "eos_token_id": None}),
    "gpt_oss": ("GptOssForCausalLM", {"num_local_experts": EXPERTS, "head_dim": 32, "rope_parameters": None}),
    "glm4_moe": (
        "Glm4MoeForCausalLM",
        {"n_routed_experts": EXPERTS, "first_k_dense_replace": 1, "routed_scaling_factor": 1.0},
    ),
}


def step(role, tokens, free):
    """The step of petrel: outputs, and the gradients by name."""
    fill(role)
    role.activations.free = lambda: free
    layers = role.routing.layers
    wants = ["logProbs", "entropy", *role.routing.outputs]
    outputs = {
        "logProbs": place(torch.empty(TOKENS - 1)),
        "entropy": place(torch.empty(TOKENS - 1)),
        "expertTokens": place(torch.empty(layers, EXPERTS, dtype=torch.int32)),
    }
    gradients = {"logProbs": place(torch.full((TOKENS - 1,), -1 / TOKENS))}
    if role.routing.has_loss:
        outputs["routerLoss"] = place(torch.empty(1))
        gradients["routerLoss"] = place(torch.tensor([COEFFICIENT]))
    lane = {
        "tokens": place(tokens.int()),
        "cuSeqlens": place(torch.tensor([0, TOKENS], dtype=torch.int32)),
        "positions": place(torch.arange(TOKENS - 1, dtype=torch.int32)),
        "targets": place(tokens[1:].int()),
        "outputs": outputs,
    }
    role.forward({"temperature": 1.0, "wants": wants, "keep": True, "base": False, "pass": 1, "lanes": [lane]})
    role.backward({"pass": 1, "lanes": [gradients]})
    made = {name: Arrays.tensor(one).clone() for name, one in outputs.items()}
    return made, {name: one.grad.full_tensor().clone() for name, one in role.scored.model.named_parameters()}


def reference(folder, role, tokens):
    """The same step of transformers' model with the same weights."""
    model = AutoModelForCausalLM.from_config(
        AutoConfig.from_pretrained(folder),
        dtype=torch.float32,
        attn_implementation="eager",
        experts_implementation="eager",
    )
    weights = {name: one.detach().full_tensor() for name, one in role.scored.model.named_parameters()}
    model.load_state_dict({**weights, **dict(role.scored.model.named_buffers())}, strict=False)
    model.eval()
    more = {"output_router_logits": True} if role.routing.has_loss else {}
    out = model(input_ids=tokens[None], use_cache=False, **more)
    log_probs = out.logits[0, :-1].log_softmax(-1).gather(1, tokens[1:, None]).squeeze(1)
    loss = -log_probs.sum() / TOKENS
    if more:
        loss = loss + COEFFICIENT * out.aux_loss
    loss.backward()
    return (float(out.aux_loss.detach()) if more else None), {name: one.grad for name, one in model.named_parameters()}


def families():
    """Families of causal models that have an auxiliary loss, and whose routers' logits transformers can record."""
    found = []
    for kind, model in MODEL_FOR_CAUSAL_LM_MAPPING.items():
        try:
            config = kind().get_text_config()
        except Exception:  # it has no defaults, or several texts
            continue
        model = model[0] if isinstance(model, tuple) else model
        if hasattr(type(config), "router_aux_loss_coef") and "router_logits" in (model._can_record_outputs or {}):
            found.append(config.model_type)
    return found


def main(folder):
    print(json.dumps(families()), flush=True)
    settings = {"device": "cpu", "rank": 0, "ranks": 1, "deterministic": True, "threads": 2, "seconds": 60}
    group = device.join({**settings, "rendezvous": os.path.join(folder, "rendezvous")})
    tokens = torch.randint(MODEL["vocab_size"], (TOKENS,), generator=torch.Generator().manual_seed(3))
    for name, (architecture, own) in MODELS.items():
        with open(os.path.join(folder, "config.json"), "w") as file:
            json.dump({**COMMON, "architectures": [architecture], "model_type": name, **own}, file)
        role = Training(group, Arrays, {"folder": folder, "head": "tokens", "compute": "fp32", "trainable": True})
        made, gradients = step(role, tokens, 2**40)
        # Every layer but the first is computed again.
        _, again = step(role, tokens, 0)
        aux, expected = reference(folder, role, tokens)
        farthest = max(
            float((gradients[one] - expected[one]).abs().max() / expected[one].abs().max().clamp(min=1e-6))
            for one in expected
        )
        print(
            json.dumps(
                {
                    "model": name,
                    "outputs": role.routing.outputs,
                    "layers": role.routing.layers,
                    "perLayer": made["expertTokens"].sum(1).tolist(),
                    "loss": float(made["routerLoss"].detach()) if "routerLoss" in made else None,
                    "expected": aux,
                    "farthest": farthest,
                    "again": all(torch.equal(gradients[one], again[one]) for one in gradients),
                }
            ),
            flush=True,
        )


main(sys.argv[2])
