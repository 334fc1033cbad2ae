"""The lesson of examples/02 with TRL's GRPOTrainer.

usage: trl_peer.py '<work as JSON>'

Says {"ready", "about"}, then answers every line on stdin with {"values": {"seconds", "bytes"}}: the median time of a
whole iteration in TRL's fastest setting, and the peak memory of one whose micro-batch has as many sequences as
petrel's. Each setting runs in a process of its own. The work names the model's folder, the rows, the lesson's sizes and
the settings.
"""
import json
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time

WORK = json.loads(sys.argv[1])
PSS_EVERY = 0.25


def say(**line):
    print(json.dumps(line), flush=True)


def dataset(rows):
    from datasets import Dataset

    with open(WORK["rows"], encoding="utf8") as lines:
        texts = [json.loads(line) for line, _ in zip(lines, range(rows))]
    return Dataset.from_list(
        [{"prompt": text["prompt"], "answer": text["reward_model"]["ground_truth"]} for text in texts]
    )


def last_integer(completions, answer, **_):
    texts = [completion[0]["content"].replace(",", "") for completion in completions]
    return [float(re.findall(r"-?\d+", text)[-1:] == [right]) for text, right in zip(texts, answer)]


class PeakPss(threading.Thread):
    """Proportional set size of this process, which has no children, looked at several times a second."""

    def __init__(self):
        super().__init__(daemon=True)
        self.bytes = 0

    def run(self):
        while True:
            with open("/proc/self/smaps_rollup", encoding="utf8") as rollup:
                self.bytes = max(
                    self.bytes, next(int(line.split()[1]) for line in rollup if line.startswith("Pss:")) * 1024
                )
            time.sleep(PSS_EVERY)


def run_one(bf16, micro_batch, iterations):
    """One training in this process."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, TrainerCallback
    from trl import GRPOConfig, GRPOTrainer

    torch.set_num_threads(WORK["threads"])
    responses = WORK["prompts"] * WORK["samples"]
    ends = []

    class Clock(TrainerCallback):
        def on_step_end(self, *args, **kwargs):
            ends.append(time.perf_counter())

    pss = PeakPss()
    pss.start()
    tokenizer = AutoTokenizer.from_pretrained(WORK["model"], padding_side="left")
    model = AutoModelForCausalLM.from_pretrained(WORK["model"], dtype=torch.float32)
    with tempfile.TemporaryDirectory() as folder:
        config = GRPOConfig(
            output_dir=folder, per_device_train_batch_size=micro_batch,
            gradient_accumulation_steps=responses // micro_batch, num_generations=WORK["samples"],
            max_completion_length=WORK["new_tokens"], learning_rate=WORK["lr"], beta=0.0, temperature=1.0,
            max_steps=iterations, bf16=bf16, use_cpu=True, save_strategy="no", report_to=[], disable_tqdm=True,
            lr_scheduler_type="constant", gradient_checkpointing=False, logging_strategy="no", seed=1,
        )
        trainer = GRPOTrainer(
            model=model, reward_funcs=last_integer, args=config, processing_class=tokenizer,
            train_dataset=dataset(WORK["prompts"] * iterations), callbacks=[Clock()],
        )
        trainer.train()
    say(seconds=statistics.median(b - a for a, b in zip(ends, ends[1:])), bytes=pss.bytes)


def in_process(iterations, **setting):
    """A setting that TRL or torch cannot run here ends the bench with its error."""
    one = json.dumps({**WORK, "one": {**setting, "iterations": iterations}})
    done = subprocess.run([sys.executable, __file__, one], stdout=subprocess.PIPE, text=True, check=True)
    return json.loads([line for line in done.stdout.splitlines() if line.startswith("{")][-1])


def turn():
    settings = [dict(bf16=bf16, micro_batch=size) for bf16 in (True, False) for size in WORK["tried_micro_batches"]]
    made = [(in_process(WORK["tried"], **setting)["seconds"], setting) for setting in settings]
    for seconds, setting in made:
        print(f"trl: {setting}: {seconds:.1f} s", file=sys.stderr)
    fastest = min(made, key=lambda one: one[0])[1]
    seconds = in_process(WORK["iterations"], **fastest)["seconds"]
    equal = in_process(2, bf16=fastest["bf16"], micro_batch=WORK["equal_micro_batch"])["bytes"]
    return {"seconds": seconds, "bytes": equal}


if "one" in WORK:
    run_one(**WORK["one"])
else:
    import importlib.metadata

    versions = [f"{name} {importlib.metadata.version(name)}" for name in ("trl", "torch")]
    say(ready=True, about=", ".join(versions))
    for _ in sys.stdin:
        say(values=turn())
