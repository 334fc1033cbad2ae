"""
Scores sequences in a pack and each alone, with families of transformers by what their layers attend to. Prints a JSON
object for each: how far apart the log-probs are, or why the family is refused. `packs.py <folder of engines/torch>`.
"""

import json
import sys
from types import SimpleNamespace
from unittest import mock

sys.path.insert(0, sys.argv[1])

import torch  # noqa: E402
from petrel_torch.attention import Pack, fits_kernel, use_packed, within  # noqa: E402
from petrel_torch.division import Division  # noqa: E402
from petrel_torch.errors import InvalidInput  # noqa: E402
from petrel_torch.model import Scored  # noqa: E402
from transformers import AutoConfig, AutoModelForCausalLM  # noqa: E402

LENGTHS = [9, 5, 12]
SIZES = {
    "hidden_size": 64,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 128,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
MIXTURE = {"num_local_experts": 4, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32}
WINDOWED = {"sliding_window": 4, "layer_types": ["sliding_attention", "full_attention"]}
GRANITE = {**MIXTURE, "shared_intermediate_size": 32, "mamba_n_heads": 8}
FAMILIES = [
    ("llama", {}),
    ("gemma3_text", {**WINDOWED, "head_dim": 16}),
    ("qwen2_moe", {**MIXTURE, **WINDOWED, "use_sliding_window": True, "shared_expert_intermediate_size": 32}),
    # Its window is in its mask alone.
    ("phimoe", {**MIXTURE, "sliding_window": 4}),
    # Gives the mask by name.
    ("afmoe", {**MIXTURE, **WINDOWED, "head_dim": 16, "num_dense_layers": 1, "num_shared_experts": 1}),
    (
        "llama4_text",
        {
            **MIXTURE,
            "head_dim": 16,
            "intermediate_size_mlp": 64,
            "attention_chunk_size": 4,
            "layer_types": ["chunked_attention", "full_attention"],
        },
    ),
    ("granitemoehybrid", {**GRANITE, "layer_types": ["attention", "attention"]}),
    ("granitemoehybrid", {**GRANITE, "layer_types": ["attention", "mamba"]}),
    ("lfm2", {"layer_types": ["conv", "full_attention"]}),
    ("lfm2_moe", {**MIXTURE, "layer_types": ["conv", "full_attention"]}),
    ("minimax", {**MIXTURE, "layer_types": ["linear_attention", "full_attention"]}),
    ("gemma3_text", {**WINDOWED, "head_dim": 16, "use_bidirectional_attention": True}),
    ("bart", {"d_model": 64, "decoder_layers": 1, "decoder_attention_heads": 4, "decoder_ffn_dim": 64}),
]


def log_probs(scored, ids, lengths):
    positions = torch.cat([torch.arange(length) for length in lengths])
    rows = torch.arange(len(ids))
    with torch.no_grad(), within(Pack.of(lengths, "cpu")):
        return scored(ids, positions, rows, ids.roll(-1), 1.0, ["logProbs"], None)["logProbs"]


def compare(family, more):
    config = AutoConfig.for_model(family, **{**SIZES, **more})
    torch.manual_seed(1)
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32, attn_implementation="sdpa").eval()
    for parameter in model.parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=0.1)
    scored = Scored(model, "tokens", lambda: None)
    ids = torch.randint(3, SIZES["vocab_size"], (sum(LENGTHS),))
    # By transformers' own attention. The target of a sequence's last token is of another one: it is not compared.
    alone = [log_probs(scored, part, [len(part)]) for part in ids.split(LENGTHS)] if family != "bart" else []
    try:
        use_packed(model, Division(rank=0, ranks=1))
    except InvalidInput as error:
        return {"refused": str(error)}
    packed = log_probs(scored, ids, LENGTHS).split(LENGTHS)
    apart = max(float((one - two)[:-1].abs().max()) for one, two in zip(alone, packed, strict=True))
    return {"attention": model.config._attn_implementation, "apart": apart}


def kernel_takes(width, values=None, dtype=torch.bfloat16, device="cuda", capability=(9, 0)):
    def tensor(size):
        return SimpleNamespace(shape=(1, 4, 8, size), dtype=dtype, device=torch.device(device))

    with mock.patch("torch.cuda.get_device_capability", return_value=capability):
        return fits_kernel(tensor(width), tensor(values or width), None)


for family, more in FAMILIES:
    print(json.dumps({"family": family, **compare(family, more)}), flush=True)
print(
    json.dumps(
        {
            "taken": [kernel_takes(128), kernel_takes(192, 128), kernel_takes(256)],
            "left": [
                kernel_takes(264),
                kernel_takes(100),
                kernel_takes(64, 128),
                kernel_takes(128, dtype=torch.float32),
                kernel_takes(128, device="cpu"),
                kernel_takes(128, capability=(7, 5)),
            ],
        }
    )
)
