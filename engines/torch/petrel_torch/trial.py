"""What `petrel engine check` gives an engine: a small model, its weights, and samples."""

import time

import torch

MODEL = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 256,
    "intermediate_size": 768,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 4096,
    "max_position_embeddings": 1024,
    "tie_word_embeddings": True,
}
RESPONSE = 32


class Arrays:
    """Arrays of a call, without shared memory."""

    @staticmethod
    def tensor(place):
        return place["array"]


def place(array):
    return {"array": array, "shape": list(array.shape)}


def fill(role):
    """Weights that are the same each time: of a generator on the processor."""
    random = torch.Generator().manual_seed(1)
    for piece in role.state.pieces:
        piece.weights.copy_(torch.randn(piece.weights.numel(), generator=random) * 0.02)
        for moment in (piece.m, piece.v):
            if moment is not None:
                moment.zero_()
    role.loaded({"steps": 0})


def sample(role, fill=fill):
    """The tokens of some responses at once, by sample, and tokens per second. `fill(role)` gives it weights."""
    fill(role)
    role.room({"maxSeqs": 8, "maxModelLen": 512})
    random = {"seed": [1, 2], "draw": 0, "turn": 0}
    keys = range(1, 9)
    role.submit(
        {
            "prompt": list(range(16)),
            "samples": [{"key": key, "random": {**random, "sample": key}} for key in keys],
            "sampling": {"temperature": 1.0, "topK": 0, "topP": 1.0, "minP": 0.0, "repetitionPenalty": 1.0},
            "maxNewTokens": RESPONSE,
            "stopTokens": [],
        }
    )
    made = {key: [] for key in keys}
    began = time.perf_counter()
    while any(len(tokens) < RESPONSE for tokens in made.values()):
        step = role.step({})
        for key, token in zip(step["keys"], step["tokens"]):
            made[key].append(token)
    return made, len(keys) * RESPONSE / (time.perf_counter() - began)
