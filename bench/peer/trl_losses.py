"""Loss and gradient of batches that petrel recorded: TRL's GRPO and RLOO losses, and PPO's in plain torch.

usage: trl_losses.py '<work as JSON>'

Says {"about"}, then for each task {"task", "loss", "ratios", "gradients"}: the smallest and largest probability ratio,
and the file with the gradient of every parameter. A task names a Hugging Face folder with the policy, which also has
batch.safetensors (core/records/FORMAT.md, "Batch tensors") and critic.safetensors, the samples of the optimiser step,
and the settings of the loss.

TRL's losses are called as its trainers call them: `compute_loss` on inputs with prompts padded on the left and
responses padded on the right. Everything is in fp32.
"""
import importlib.metadata
import json
import sys
import tempfile
from pathlib import Path

import torch
import transformers
from safetensors.torch import load_file, save_file

WORK = json.loads(sys.argv[1])


def say(**line):
    print(json.dumps(line), flush=True)


def pad(rows, left=False, dtype=torch.float32):
    width = max(len(row) for row in rows)
    padded = torch.zeros(len(rows), width, dtype=dtype)
    for line, row in zip(padded, rows):
        line[slice(width - len(row), width) if left else slice(len(row))] = row
    return padded


class Batch:
    """The samples of one optimiser step, padded."""

    def __init__(self, folder, samples):
        self.file = load_file(folder / "batch.safetensors")
        self.samples = samples
        prompts, responses = [], []
        for b in samples:
            start, end = self.file["offsets"][b : b + 2].tolist()
            first = self.file["scored"][self.file["scored_offsets"][b]].item()
            prompts.append(self.file["tokens"][start:first])
            responses.append(self.file["tokens"][first:end])
        self.prompt_ids = pad(prompts, left=True, dtype=torch.long)
        self.prompt_mask = pad([torch.ones(len(row)) for row in prompts], left=True, dtype=torch.long)
        self.completion_ids = pad(responses, dtype=torch.long)
        self.mask = self.column("mask").long()

    def column(self, name):
        """A [T] array as [samples, width], or None where the batch has none."""
        if name not in self.file:
            return None
        offsets = self.file["scored_offsets"].tolist()
        return pad([self.file[name][offsets[b] : offsets[b + 1]].float() for b in self.samples])

    def ids(self):
        return torch.cat([self.prompt_ids, self.completion_ids], dim=1)

    def attention(self):
        return torch.cat([self.prompt_mask, (torch.arange(self.mask.size(1)) < self.lengths()).long()], dim=1)

    def lengths(self):
        offsets = self.file["scored_offsets"]
        return torch.stack([offsets[b + 1] - offsets[b] for b in self.samples]).unsqueeze(1)


def policy_of(folder):
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).train()
    # torch gives the padding token's embedding no gradient as an input, not even where the policy sampled that token.
    model.get_input_embeddings().padding_idx = None
    return model


def trainer_of(task, model, folder, place):
    """A trainer with the loss's settings. Its data set and reward are never used."""
    from datasets import Dataset
    from trl import GRPOConfig, GRPOTrainer, RLOOConfig, RLOOTrainer

    loss = task["loss"]
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, padding_side="left")
    shared = dict(
        output_dir=place, per_device_train_batch_size=2, num_generations=2, gradient_accumulation_steps=1,
        steps_per_generation=1, max_completion_length=loss["width"], temperature=loss["temperature"],
        epsilon=loss["clip_low"], epsilon_high=loss["clip_high"], use_cpu=True, bf16=False, report_to=[],
        gradient_checkpointing=False, save_strategy="no",
    )
    if task["comparison"] == "grpo":
        trainer_class = GRPOTrainer
        config = GRPOConfig(
            **shared, loss_type=loss["trl_loss_type"], beta=loss["kl_coef"], entropy_coef=loss["entropy_coef"],
            importance_sampling_level="token", use_bias_correction_kl=False,
        )
    else:
        trainer_class, config = RLOOTrainer, RLOOConfig(**shared, beta=0.0)
    rows = Dataset.from_list([{"prompt": "1+1="}] * 2)
    return trainer_class(
        model=model, reward_funcs=lambda completions, **_: [0.0] * len(completions), args=config,
        processing_class=tokenizer, train_dataset=rows,
    )


def first_of_row(column, mask):
    """The value at the first valid token."""
    return column.gather(1, mask.argmax(1, keepdim=True)).squeeze(1)


def trl_loss(task, model, batch, folder, place):
    trainer = trainer_of(task, model, folder, place)
    trainer.current_gradient_accumulation_steps = 1
    inputs = dict(
        prompt_ids=batch.prompt_ids, prompt_mask=batch.prompt_mask, completion_ids=batch.completion_ids,
        completion_mask=batch.mask, num_items_in_batch=batch.mask.sum(), advantages=batch.column("advantages"),
    )
    old = batch.column("old_log_probs")
    if task["comparison"] == "rloo":
        inputs["advantages"] = first_of_row(inputs["advantages"], batch.mask)
        # TRL's RLOO always reads them. With one optimiser step petrel records none: they are those of its own forward
        # pass.
        if old is None:
            with torch.no_grad():
                old = log_probs_of(model, batch, task["loss"]["temperature"])[0]
        inputs["old_logps"] = (old * batch.mask).sum(1)
    elif old is not None:
        inputs["old_per_token_logps"] = old
    reference = batch.column("ref_log_probs")
    if reference is not None:
        inputs["ref_per_token_logps"] = reference
    return trainer.compute_loss(trainer.model, inputs)


def log_probs_of(model, batch, temperature):
    """Of the response's tokens, and the entropy of each distribution."""
    width = batch.completion_ids.size(1)
    logits = model(batch.ids(), attention_mask=batch.attention(), use_cache=False).logits[:, -width - 1 : -1]
    every = (logits / temperature).log_softmax(-1)
    return every.gather(-1, batch.completion_ids.unsqueeze(-1)).squeeze(-1), -(every.exp() * every).sum(-1)


def mean_of(values, mask, loss):
    """Of a loss per token, by petrel's `actor.loss_agg_mode`."""
    mode = loss["aggregation"]
    if mode == "token-mean":
        return (values * mask).sum() / mask.sum()
    rows = (values * mask).sum(1)
    if mode == "seq-mean-token-mean":
        rows = rows / mask.sum(1)
    if mode == "seq-mean-token-sum-norm":
        rows = rows / loss["width"]
    return rows.mean()


def ppo_loss(task, model, batch):
    """Clipped objective with a dual clip (Ye et al. 2020), entropy bonus, and KL to the reference (k3 of Schulman
    2020).
    """
    loss = task["loss"]
    now, entropy = log_probs_of(model, batch, loss["temperature"])
    old = batch.column("old_log_probs")
    old = now.detach() if old is None else old
    advantages = batch.column("advantages")
    ratio = torch.exp(now - old)
    clipped = ratio.clamp(1 - loss["clip_low"], 1 + loss["clip_high"])
    tokens = torch.maximum(-advantages * ratio, -advantages * clipped)
    bounded = torch.minimum(tokens, -advantages * loss["dual_clip"])
    tokens = torch.where(advantages < 0, bounded, tokens)
    total = mean_of(tokens, batch.mask, loss) - loss["entropy_coef"] * mean_of(entropy, batch.mask, loss)
    if loss["kl_coef"] != 0:
        away = batch.column("ref_log_probs") - now
        total = total + loss["kl_coef"] * mean_of(torch.exp(away) - away - 1, batch.mask, loss)
    return total


def value_loss(task, model, batch):
    """Half the squared error of a value at each position before a response token; clipped (Schulman et al. 2016)."""
    loss = task["loss"]
    width = batch.completion_ids.size(1)
    values = model(batch.ids(), attention_mask=batch.attention(), use_cache=False).logits[:, -width - 1 : -1, 0]
    returns, old = batch.column("returns"), batch.column("values")
    errors = (values - returns) ** 2
    if loss["value_clip"] is not None:
        near = values.clamp(old - loss["value_clip"], old + loss["value_clip"])
        errors = torch.maximum(errors, (near - returns) ** 2)
    return 0.5 * mean_of(errors, batch.mask, loss)


def critic_of(folder):
    config = transformers.AutoConfig.from_pretrained(folder, num_labels=1)
    model = transformers.AutoModelForTokenClassification.from_config(config).float()
    model.load_state_dict(load_file(folder / "critic.safetensors"))
    model.get_input_embeddings().padding_idx = None
    return model.eval()  # transformers' value head has a dropout, which must not act


def ratios_of(task, model, batch):
    """Smallest and largest, as the comparison has them: of a token, or of a whole response."""
    old = batch.column("old_log_probs")
    if old is None:
        return [1.0, 1.0]
    with torch.no_grad():
        log_ratio = (log_probs_of(model, batch, task["loss"]["temperature"])[0] - old) * batch.mask
    ratio = torch.exp(log_ratio.sum(1) if task["comparison"] == "rloo" else log_ratio[batch.mask == 1])
    return [ratio.min().item(), ratio.max().item()]


def run(number, task):
    folder = Path(task["folder"])
    batch = Batch(folder, task["samples"])
    if task["comparison"] == "value":
        model, ratios = critic_of(folder), None
        loss = value_loss(task, model, batch)
    else:
        model = policy_of(folder)
        ratios = ratios_of(task, model, batch)
        if task["comparison"] == "ppo":
            loss = ppo_loss(task, model, batch)
        else:
            with tempfile.TemporaryDirectory() as place:
                loss = trl_loss(task, model, batch, folder, place)
    model.zero_grad()
    loss.backward()
    gradients = str(folder / f"gradients-{number}.safetensors")
    save_file({name: one.grad.contiguous() for name, one in model.named_parameters()}, gradients)
    say(task=number, loss=loss.item(), ratios=ratios, gradients=gradients)


def main():
    torch.set_num_threads(WORK["threads"])
    transformers.logging.set_verbosity_error()
    say(about=", ".join(f"{name} {importlib.metadata.version(name)}" for name in ("trl", "transformers", "torch")))
    for number, task in enumerate(WORK["tasks"]):
        run(number, task)


main()
