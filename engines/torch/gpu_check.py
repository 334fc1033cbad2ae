"""
What a GPU does with the torch engine: `gpu_check.py [--device cuda|cpu] [--small]` prints a table, a line as soon as it
is known, and exits with 1 when a line fails. `npm run gpu:check` runs it with the Python of the engine. It needs torch
and transformers; peft for the line of adapters. `--small` takes models that a processor trains in seconds: so this
program is tested where there is no GPU. With random weights.
"""

import argparse
import gc
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from unittest import mock

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
os.environ.setdefault("NCCL_SOCKET_IFNAME", "lo")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import torch  # noqa: E402
from petrel_torch import device  # noqa: E402
from petrel_torch.decoding import Decoding  # noqa: E402
from petrel_torch.folder import ModelFolder  # noqa: E402
from petrel_torch.training import Training  # noqa: E402
from petrel_torch.trial import Arrays, place  # noqa: E402

QWEN = {"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "max_position_embeddings": 32768}
# Shapes of Qwen2.5.
SHAPES = {
    "0.5B": (896, 4864, 24, 14, 2, 151936, True),
    "1.5B": (1536, 8960, 28, 12, 2, 151936, True),
    "7B": (3584, 18944, 28, 28, 4, 152064, False),
    "tiny": (64, 128, 2, 4, 2, 512, True),
}
# Dense peak in bf16 by data sheet, in TFLOP/s.
PEAKS = {"H100 PCIe": 756, "H100": 989, "H200": 989, "A100": 312, "L40S": 362, "B200": 2250}
# Goals of a step of 1.5B: share of the peak, deterministic beside fast, and what the border of the port may take.
SHARE_OF_PEAK, DETERMINISTIC, BORDER = 0.35, 1.10, 0.03
MICRO_BATCHES = 2


def model(name):
    hidden, inner, layers, heads, key_heads, vocab, tied = SHAPES[name]
    return {
        **QWEN,
        "hidden_size": hidden,
        "intermediate_size": inner,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": key_heads,
        "vocab_size": vocab,
        "tie_word_embeddings": tied,
    }


def folder_of(config, adapter=None):
    folder = tempfile.mkdtemp(prefix="petrel-gpu-check-")
    with open(os.path.join(folder, "config.json"), "w") as file:
        json.dump(config, file)
    if adapter is None:
        return folder
    own = tempfile.mkdtemp(prefix="petrel-gpu-check-")
    with open(os.path.join(own, "adapter_config.json"), "w") as file:
        json.dump({**adapter, "peft_type": "LORA", "base_model_name_or_path": folder}, file)
    return own


def group_on(kind, deterministic):
    settings = {"device": kind, "rank": 0, "ranks": 1, "threads": os.cpu_count(), "seconds": 120}
    rendezvous = os.path.join(tempfile.mkdtemp(prefix="petrel-gpu-check-"), "rendezvous")
    return device.join({**settings, "deterministic": deterministic, "rendezvous": rendezvous})


def fill(role, seed=1):
    """Weights that repeat themselves: 1 for norms, else of one block of normal numbers."""
    block = 0.02 * torch.randn(1 << 16, generator=torch.Generator().manual_seed(seed))
    for piece in role.state.pieces:
        count = piece.weights.numel()
        values = torch.ones(count) if "norm" in piece.name else block.repeat(-(-count // block.numel()))[:count]
        piece.weights.copy_(values)
        piece.forget_moments()
    role.loaded({"steps": 0})


def opened(group, folder, compute, trainable=True):
    return Training(group, Arrays, {"folder": folder, "head": "tokens", "compute": compute, "trainable": trainable})


def pack_of(vocab, tokens, seed):
    """Sequences of 200 to 1,400 tokens, or so many as there are."""
    random = torch.Generator().manual_seed(seed)
    lengths = []
    while sum(lengths) < tokens:
        most = tokens - sum(lengths)
        lengths.append(
            min(most, int(torch.randint(min(200, tokens // 4), min(1400, tokens) + 1, (1,), generator=random)))
        )
    ids = torch.randint(vocab, (tokens,), generator=random, dtype=torch.int32)
    return {
        "tokens": place(ids),
        "cuSeqlens": place(torch.tensor([0, *lengths], dtype=torch.int32).cumsum(0, dtype=torch.int32)),
        "positions": place(torch.arange(tokens - 1, dtype=torch.int32)),
        "targets": place(ids[1:].clone()),
        "outputs": {"logProbs": place(torch.empty(tokens - 1))},
    }


def wait(group):
    if group.device.type == "cuda":
        torch.cuda.synchronize()


def forward(role, lane, number, keep):
    role.forward(
        {"temperature": 1.0, "wants": ["logProbs"], "keep": keep, "base": False, "pass": number, "lanes": [lane]}
    )
    return lane["outputs"]["logProbs"]["array"]


def step(role, lanes):
    """One optimiser step in the two phases of the port. Gives its seconds, and those between the phases."""
    wait(role.group)
    began, between = time.perf_counter(), 0.0
    for number, lane in enumerate(lanes):
        log_probs = forward(role, lane, number, True)
        wait(role.group)
        middle = time.perf_counter()
        gradient = torch.sin(3 * log_probs) / log_probs.numel()
        between += time.perf_counter() - middle
        role.backward({"pass": number, "lanes": [{"logProbs": place(gradient)}]})
    role.step({"lr": 1e-4, "beta1": 0.9, "beta2": 0.99, "eps": 1e-8, "weightDecay": 0.01, "maxGradNorm": 1.0})
    wait(role.group)
    return time.perf_counter() - began, between


def digest(role):
    found = hashlib.sha256()
    for piece in role.state.pieces:
        for part in (piece.weights, piece.m, piece.v):
            found.update(part.cpu().numpy().tobytes())
    return found.hexdigest()[:16]


def lanes_of(vocab, tokens, number):
    return [pack_of(vocab, tokens, 100 * number + i) for i in range(MICRO_BATCHES)]


def exact(kind, name, tokens, steps, folder):
    """
    In a process of its own: the digest after some steps. `folder`: keeps the state of the third, or goes on with it.
    """
    group = group_on(kind, True)
    role = opened(group, folder_of(model(name)), "bf16")
    fill(role)
    kept, first = os.path.join(folder, "state.pt"), 0
    if os.path.exists(kept):
        saved = torch.load(kept, weights_only=True)
        first = saved["step"]
        for piece, parts in zip(role.state.pieces, saved["parts"], strict=True):
            for mine, values in zip((piece.weights, piece.m, piece.v), parts, strict=True):
                mine.copy_(values)
        role.loaded({"steps": first})
    for number in range(first, steps):
        step(role, lanes_of(role.config.vocab_size, tokens, number))
        if number == 2 and folder != "-":
            parts = [[part.cpu() for part in (one.weights, one.m, one.v)] for one in role.state.pieces]
            torch.save({"step": 3, "parts": parts}, kept)
    print(json.dumps({"digest": digest(role)}))


class Table:
    def __init__(self):
        self.failed = 0

    def row(self, what, found, passed=None):
        self.failed += passed is False
        word = {None: "-", True: "PASS", False: "FAIL"}[passed]
        print(f"| {what} | {found} | {word} |", flush=True)

    @contextmanager
    def line(self, what):
        """Within it the end of another process is a line that fails, and the table goes on."""
        try:
            yield
        except ChildFailed as error:
            self.row(what, error, False)


class ChildFailed(Exception):
    """A process of this program has failed. What it wrote is on stderr."""


def child(kind, *words):
    """What this program prints last in another process."""
    command = [sys.executable, "-I", "-B", __file__, "--device", kind, *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        print(done.stderr, file=sys.stderr, flush=True)
        last = (done.stderr.strip().splitlines() or ["it wrote nothing"])[-1]
        raise ChildFailed(f"{words[0]} ended with exit code {done.returncode}: {last}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def forget(group):
    """The models of a check refer to themselves: until they are collected, they have memory that the next one needs."""
    gc.collect()
    if group.device.type == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(group.device)


def check_exact(table, kind, name, tokens):
    with tempfile.TemporaryDirectory() as folder:
        # The second is alone; the third goes on with what the first has saved.
        found = [child(kind, "--exact", name, tokens, 5, own)["digest"] for own in (folder, "-", folder)]
    table.row(f"{name}: bits of 5 steps in another process", " ".join(found[:2]), found[0] == found[1])
    table.row(f"{name}: and after a save and a load at step 3", found[2], found[0] == found[2])


def small_config(family):
    config = {
        "model_type": family,
        "hidden_size": 128,
        "intermediate_size": 256,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 32,
        "vocab_size": 512,
        "max_position_embeddings": 512,
        "sliding_window": 48,
    }
    mixture = {"moe_intermediate_size": 64, "num_experts": 4, "num_experts_per_tok": 2}
    latent = {"q_lora_rank": 32, "kv_lora_rank": 32, "qk_nope_head_dim": 32, "qk_rope_head_dim": 16, "v_head_dim": 32}
    grouped = {"n_routed_experts": 4, "n_group": 2, "topk_group": 1, "first_k_dense_replace": 1, "n_shared_experts": 1}
    return {
        "llama": {**config, "architectures": ["LlamaForCausalLM"]},
        "mistral": {**config, "architectures": ["MistralForCausalLM"]},
        "qwen3_moe": {**config, **mixture, "architectures": ["Qwen3MoeForCausalLM"]},
        "deepseek_v3": {
            **config,
            **mixture,
            **latent,
            **grouped,
            "num_key_value_heads": 4,
            # What positions turn.
            "head_dim": 16,
            "architectures": ["DeepseekV3ForCausalLM"],
        },
    }[family]


FAMILIES = ("llama", "mistral", "qwen3_moe", "deepseek_v3")


def values(group, compute):
    """Log-probs of small models by family, with the same weights on every device."""
    made = {}
    for family in FAMILIES:
        role = opened(group, folder_of(small_config(family)), compute, trainable=False)
        fill(role)
        made[family] = forward(role, pack_of(512, 256, 1), 1, False).clone()
        del role
        forget(group)
    return made


def check_values(table, group):
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "values.pt")
        child("cpu", "--values", file)
        expected = torch.load(file, weights_only=True)
    for compute, most in (("fp32", 2e-4), ("bf16", 0.1)):
        for family, made in values(group, compute).items():
            apart = (made - expected[family]).abs().max().item()
            table.row(f"{family}: log-probs in {compute} beside a processor's", f"{apart:.1e} apart", apart < most)


def peak_of(group):
    """FLOP/s of the card's products in bf16; None where no data sheet is known."""
    name = device.facts(group)["device"]
    return next((1e12 * peak for card, peak in PEAKS.items() if card in name), None)


def memory_row(group):
    if group.device.type != "cuda":
        return "-"
    most = torch.cuda.max_memory_allocated(group.device) / 2**30
    return f"{most:.1f} GiB at most"


def check_speed(table, group, name, tokens, exactly):
    """
    Not deterministic; `exactly`: seconds of a deterministic step, if known. FLOPs of a step: 6 for each parameter and
    token (forward 2, backward 4). A processor's times are shown and not judged.
    """
    judged = group.device.type == "cuda"
    role = opened(group, folder_of(model(name)), "bf16")
    fill(role)
    times = [step(role, lanes_of(role.config.vocab_size, tokens, number)) for number in range(4)]
    seconds, between = min(times[1:])
    trained = MICRO_BATCHES * tokens
    parameters = sum(piece.weights.numel() for piece in role.state.pieces)
    peak = peak_of(group)
    share = None if peak is None else 6 * parameters * trained / seconds / peak
    found = f"{trained / seconds:.0f} tokens/s" + ("" if share is None else f", {share:.2f} of the peak in bf16")
    table.row(f"{name}: step", found, None if share is None or name != "1.5B" else share >= SHARE_OF_PEAK)
    border = between / seconds
    table.row(f"{name}: between the phases", f"{border:.3f} of a step", border <= BORDER if judged else None)
    table.row(f"{name}: memory", memory_row(group))
    if exactly is not None:
        ratio = exactly / seconds
        table.row(f"{name}: deterministic beside fast", f"{ratio:.2f}", ratio <= DETERMINISTIC if judged else None)


def check_adapter(table, group, name, tokens):
    try:
        import peft  # noqa: F401
    except ImportError:
        return table.row(f"{name}: step of an adapter", "there is no peft")
    targets = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
    adapter = {"r": 16, "lora_alpha": 32, "target_modules": targets, "task_type": "CAUSAL_LM"}
    folder = folder_of(model(name), adapter)
    # The base's folder has no weights: `fill` gives them.
    with mock.patch.object(ModelFolder, "load_base"):
        role = opened(group, folder, "bf16")
    fill(role)
    times = [step(role, lanes_of(role.config.vocab_size, tokens, number)) for number in range(3)]
    seconds, _ = min(times[1:])
    table.row(f"{name}: step of an adapter", f"{MICRO_BATCHES * tokens / seconds:.0f} tokens/s, {memory_row(group)}")


def check_iteration(table, group, name, prompts, response):
    """Samples with `hf`, scores the responses by their share of even tokens, and takes a step of REINFORCE."""
    folder = folder_of(model(name))
    policy, sampler = (
        opened(group, folder, "bf16"),
        Decoding(group, Arrays, {"folder": folder, "head": "tokens", "compute": "bf16"}),
    )
    for role in (policy, sampler):
        fill(role)
    sampler.room({"maxSeqs": prompts, "maxModelLen": 64 + response})
    keys, prompt = range(1, prompts + 1), list(range(16))
    random = {"seed": [1, 2], "draw": 0, "turn": 0}
    began = time.perf_counter()
    sampler.submit(
        {
            "prompt": prompt,
            "samples": [{"key": key, "random": {**random, "sample": key}} for key in keys],
            "sampling": {"temperature": 1.0, "topK": 0, "topP": 1.0, "minP": 0.0, "repetitionPenalty": 1.0},
            "maxNewTokens": response,
            "stopTokens": [],
        }
    )
    made = {key: [] for key in keys}
    while any(len(tokens) < response for tokens in made.values()):
        at = sampler.step({})
        for key, token in zip(at["keys"], at["tokens"], strict=True):
            made[key].append(token)
    sampled = time.perf_counter() - began
    rewards = torch.tensor([sum(token % 2 == 0 for token in tokens) / response for tokens in made.values()])
    length, first = len(prompt) + response, len(prompt) - 1
    ids = torch.tensor([prompt + tokens for tokens in made.values()], dtype=torch.int32)
    rows = torch.cat([i * length + torch.arange(first, length - 1) for i in range(prompts)]).int()
    lane = {
        "tokens": place(ids.reshape(-1)),
        "cuSeqlens": place(torch.arange(prompts + 1, dtype=torch.int32) * length),
        "positions": place(rows),
        "targets": place(ids[:, len(prompt) :].reshape(-1).contiguous()),
        "outputs": {"logProbs": place(torch.empty(prompts * response))},
    }
    forward(policy, lane, 1, True)
    advantages = (rewards - rewards.mean()).repeat_interleave(response)
    policy.backward({"pass": 1, "lanes": [{"logProbs": place(-advantages / advantages.numel())}]})
    taken = policy.step({"lr": 1e-5, "beta1": 0.9, "beta2": 0.99, "eps": 1e-8, "weightDecay": 0, "maxGradNorm": 1.0})
    found = f"{prompts * response / sampled:.0f} sampled tokens/s, gradient {taken['gradNorm']:.3g}"
    table.row(f"{name}: an iteration with the sampler hf", found, taken["taken"] and taken["gradNorm"] > 0)


def time_exact(kind, name, tokens):
    group = group_on(kind, True)
    role = opened(group, folder_of(model(name)), "bf16")
    fill(role)
    times = [step(role, lanes_of(role.config.vocab_size, tokens, number))[0] for number in range(4)]
    print(json.dumps({"seconds": min(times[1:])}))


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    options.add_argument("--small", action="store_true")
    # What the program asks of itself in other processes.
    options.add_argument("--exact", nargs=4, help=argparse.SUPPRESS)
    options.add_argument("--time-exact", nargs=2, help=argparse.SUPPRESS)
    options.add_argument("--values", help=argparse.SUPPRESS)
    given = options.parse_args()
    kind = given.device
    if given.exact is not None:
        name, tokens, steps, folder = given.exact
        return exact(kind, name, int(tokens), int(steps), folder)
    if given.time_exact is not None:
        return time_exact(kind, given.time_exact[0], int(given.time_exact[1]))
    if given.values is not None:
        torch.save(values(group_on(kind, True), "fp32"), given.values)
        return print(json.dumps({"saved": given.values}))
    if kind == "cuda" and not torch.cuda.is_available():
        print("no GPU that torch can use: nvidia-smi, and python3 -c 'import torch; print(torch.version.cuda)'")
        return 8
    table = Table()
    print("| what | found | |\n|---|---|---|")
    trained = [("tiny", 512)] if given.small else [("0.5B", 16384), ("1.5B", 16384)]
    exactly = {}
    for name, tokens in trained:
        with table.line(f"{name}: bits of 5 steps"):
            check_exact(table, kind, name, tokens)
        with table.line(f"{name}: a deterministic step"):
            exactly[name] = child(kind, "--time-exact", name, tokens)["seconds"]
    group = group_on(kind, False)
    facts = device.facts(group)
    table.row(
        "device",
        f"{facts['device']}, torch {facts['torch']}, CUDA {facts['cuda']}, transformers {facts['transformers']}",
    )
    with table.line("log-probs of a processor"):
        check_values(table, group)
    for name, tokens in trained:
        check_speed(table, group, name, tokens, exactly.get(name))
        forget(group)
    check_adapter(table, group, *(("tiny", 512) if given.small else ("7B", 8192)))
    forget(group)
    check_iteration(table, group, *(("tiny", 8, 16) if given.small else ("0.5B", 64, 128)))
    print(f"\n{table.failed} failed")
    return 1 if table.failed else 0


if __name__ == "__main__":
    sys.exit(main())
