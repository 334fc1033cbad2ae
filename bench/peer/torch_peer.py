"""What PyTorch and transformers do with the work that bench/ gives petrel's engine.

usage: torch_peer.py '<work as JSON>'

Says {"ready", "about"} when the model is warm, then answers every line on stdin with {"value": …} of one turn. The work
names its shapes itself (bench/sizes.ts), so that both sides always have the same.

Training: forward, log-prob of every next token, clipped policy loss with an importance ratio, backward, gradient clipping,
fused AdamW on fp32 weights; bf16 is autocast. Decoding: generate() with sampling at temperature 1, in bf16 weights.
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


class TrainingStep:
    def __init__(self):
        self.model = new_model(torch.float32).train()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-5, weight_decay=0.01, fused=True)
        self.ids = random_ids(WORK["batch"], WORK["length"])
        self.advantages = torch.randn(WORK["batch"], WORK["length"] - 1)
        self.old = None
        self.take()

    def log_probs(self):
        with torch.autocast("cpu", torch.bfloat16, enabled=BF16):
            logits = self.model(self.ids, use_cache=False).logits[:, :-1]
        chosen = self.ids[:, 1:].unsqueeze(-1)
        return logits.float().log_softmax(-1).gather(-1, chosen).squeeze(-1)

    def take(self):
        now = self.log_probs()
        if self.old is None:
            self.old = now.detach().clone()
        ratio = torch.exp(now - self.old)
        clipped = ratio.clamp(0.8, 1.2)
        loss = -torch.minimum(self.advantages * ratio, self.advantages * clipped).mean()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)


class Decoding:
    def __init__(self):
        self.model = new_model(torch.bfloat16 if BF16 else torch.float32).eval()
        self.ids = random_ids(WORK["batch"], WORK["prompt"])
        self.make(2)

    @torch.inference_mode()
    def make(self, tokens):
        made = self.model.generate(
            self.ids, attention_mask=torch.ones_like(self.ids), do_sample=True, temperature=1.0, top_k=0, top_p=1.0,
            min_new_tokens=tokens, max_new_tokens=tokens, eos_token_id=None, pad_token_id=0,
        )
        return made.shape[0] * (made.shape[1] - self.ids.shape[1])


def timed(work):
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def train():
    step = TrainingStep()
    return lambda: WORK["batch"] * WORK["length"] / timed(step.take)[0]


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
        seconds, made = timed(lambda: decoding.make(WORK["new_tokens"]))
        return made / seconds

    return turn


def ttft():
    decoding = Decoding()
    return lambda: 1000 * timed(lambda: decoding.make(1))[0]


def main():
    torch.set_num_threads(WORK["threads"])
    transformers.logging.set_verbosity_error()
    turn = {"train": train, "memory": memory, "decode": decode, "ttft": ttft}[WORK["work"]]()
    say(ready=True, about=f"torch {torch.__version__}, transformers {transformers.__version__}")
    for _ in sys.stdin:
        say(value=turn())


main()
