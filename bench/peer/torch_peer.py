"""What PyTorch and transformers do with the work that bench/ gives petrel's engine.

usage: torch_peer.py '<work as JSON>'

Says {"ready", "about"} when the model is warm, then answers every line on stdin with {"value": …} of one turn. The work
names its shapes itself (bench/sizes.ts), so that both sides always have the same.

Training: forward, log-prob of every scored token, clipped policy loss with an importance ratio, backward, gradient
clipping, fused AdamW on fp32 weights; bf16 is autocast. Logits are computed for scored tokens only. Decoding:
generate() with sampling at temperature 1, in bf16 weights; the time of its first token belongs to the prefill and not
to the decoding.
"""
import json
import sys
import time

import torch
import transformers

WORK = json.loads(sys.argv[1])
BF16 = WORK["precision"] == "bf16"


def say(**line):
    print(json.dumps(line), flush=True)


def new_model(dtype):
    torch.manual_seed(1)
    config = transformers.LlamaConfig(max_position_embeddings=2048, attn_implementation="sdpa", **WORK["shape"])
    return transformers.LlamaForCausalLM(config).to(dtype)


def random_ids(rows, columns):
    return torch.randint(3, WORK["shape"]["vocab_size"], (rows, columns))


def sequences():
    """[batch, length]; `responses` neighbours have the same prompt."""
    ids = random_ids(WORK["batch"], WORK["length"])
    prompts, responses = WORK.get("prompt_tokens", 0), WORK.get("responses", 1)
    for first in range(0, len(ids), responses):
        ids[first : first + responses, :prompts] = ids[first, :prompts].clone()
    return ids


class TrainingStep:
    def __init__(self):
        self.model = new_model(torch.float32).train()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-5, weight_decay=0.01, fused=True)
        self.ids = sequences()
        self.scored = WORK["length"] - WORK.get("prompt_tokens", 1)
        self.advantages = torch.randn(WORK["batch"], self.scored)
        self.passes = torch.arange(WORK["batch"]).split(WORK.get("sequences_per_pass", WORK["batch"]))
        self.old = {}
        self.take()

    def log_probs(self, ids):
        with torch.autocast("cpu", torch.bfloat16, enabled=BF16):
            logits = self.model(ids, use_cache=False, logits_to_keep=self.scored + 1).logits[:, :-1]
        chosen = ids[:, -self.scored :].unsqueeze(-1)
        return logits.float().log_softmax(-1).gather(-1, chosen).squeeze(-1)

    def accumulate(self, index, rows):
        now = self.log_probs(self.ids[rows])
        old = self.old.setdefault(index, now.detach().clone())
        advantages = self.advantages[rows]
        ratio = torch.exp(now - old)
        clipped = ratio.clamp(0.8, 1.2)
        loss = -torch.minimum(advantages * ratio, advantages * clipped).sum() / self.advantages.numel()
        loss.backward()

    def take(self):
        for index, rows in enumerate(self.passes):
            self.accumulate(index, rows)
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)


class FirstToken(transformers.StoppingCriteria):
    """Notes when the first token of the batch was drawn. Never stops."""

    def __init__(self):
        self.at = None

    def __call__(self, input_ids, scores, **kwargs):
        if self.at is None:
            self.at = time.perf_counter()
        return torch.zeros(input_ids.shape[0], dtype=torch.bool)


class Decoding:
    def __init__(self):
        self.model = new_model(torch.bfloat16 if BF16 else torch.float32).eval()
        self.ids = random_ids(WORK["batch"], WORK["prompt"])
        self.make(2)

    @torch.inference_mode()
    def make(self, tokens):
        """Tokens after the first, and the seconds that they took."""
        first = FirstToken()
        made = self.model.generate(
            self.ids, attention_mask=torch.ones_like(self.ids), do_sample=True, temperature=1.0, top_k=0, top_p=1.0,
            min_new_tokens=tokens, max_new_tokens=tokens, eos_token_id=None, pad_token_id=0,
            stopping_criteria=[first],
        )
        return made.shape[0] * (made.shape[1] - self.ids.shape[1] - 1), time.perf_counter() - first.at


def timed(work):
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def train():
    step = TrainingStep()
    return lambda: WORK["batch"] * WORK["length"] / timed(step.take)


def peak_bytes():
    """Linux' own high-water mark of this process."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM:"))


def memory():
    step = TrainingStep()

    def turn():
        step.take()
        return peak_bytes()

    return turn


def decode():
    decoding = Decoding()

    def turn():
        made, seconds = decoding.make(WORK["new_tokens"])
        return made / seconds

    return turn


def ttft():
    decoding = Decoding()
    return lambda: 1000 * timed(lambda: decoding.make(1))


def prefill():
    decoding = Decoding()
    return lambda: decoding.ids.numel() / timed(lambda: decoding.make(1))


def main():
    torch.set_num_threads(WORK["threads"])
    transformers.logging.set_verbosity_error()
    turn = {"train": train, "memory": memory, "decode": decode, "prefill": prefill, "ttft": ttft}[WORK["work"]]()
    say(ready=True, about=f"torch {torch.__version__}, transformers {transformers.__version__}")
    for _ in sys.stdin:
        say(value=turn())


main()
