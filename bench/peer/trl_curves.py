"""The training reward of every iteration, as TRL's GRPOTrainer or RLOOTrainer learns the task of examples/01.

usage: trl_curves.py '<work as JSON>'

Says {"about"}, then for each seed {"seed", "rewards"}: the mean reward of the responses of each iteration, before the
iteration's update. The work names the model's folder, the rows, the seeds and every setting
(bench/learning/curves/settings.ts), so that both sides have the same.
"""
import importlib.metadata
import json
import sys
import tempfile

WORK = json.loads(sys.argv[1])


def say(**line):
    print(json.dumps(line), flush=True)


def dataset():
    from datasets import Dataset

    with open(WORK["rows"], encoding="utf8") as lines:
        rows = [json.loads(line) for line in lines]
    return Dataset.from_list([{"prompt": row["prompt"], "answer": row["reward_model"]["ground_truth"]} for row in rows])


def settings(folder, seed):
    """Everything that both trainers call by the same name."""
    responses = WORK["prompts"] * WORK["samples"]
    return dict(
        output_dir=folder, seed=seed, use_cpu=True, bf16=False, max_steps=WORK["iterations"] * WORK["steps"],
        # One generation makes the responses of all `steps` optimiser steps of an iteration.
        per_device_train_batch_size=responses // WORK["steps"], steps_per_generation=WORK["steps"],
        gradient_accumulation_steps=1, num_iterations=1, num_generations=WORK["samples"],
        max_completion_length=WORK["new_tokens"], temperature=1.0, top_p=1.0, top_k=0, repetition_penalty=1.0,
        learning_rate=WORK["lr"], lr_scheduler_type="constant", warmup_steps=0, optim="adamw_torch",
        adam_beta1=WORK["betas"][0], adam_beta2=WORK["betas"][1], adam_epsilon=WORK["eps"],
        weight_decay=WORK["weight_decay"], max_grad_norm=WORK["max_grad_norm"], epsilon=WORK["clip"], beta=0.0,
        mask_truncated_completions=False, gradient_checkpointing=False, disable_dropout=True,
        save_strategy="no", logging_strategy="no", report_to=[], disable_tqdm=True,
    )


def trainer_of(algorithm):
    from trl import GRPOConfig, GRPOTrainer, RLOOConfig, RLOOTrainer

    if algorithm == "grpo":
        own = dict(loss_type="dapo", scale_rewards="group", importance_sampling_level="token", entropy_coef=0.0)
        return GRPOTrainer, GRPOConfig, own
    return RLOOTrainer, RLOOConfig, dict(normalize_advantages=False)


def keep_groups_together():
    """TRL mixes the responses of an iteration before it cuts them into mini-batches; this leaves them in their order.
    """
    from trl.trainer import grpo_trainer

    grpo_trainer.shuffle_sequence_dict = lambda batch: batch


def curve(seed):
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    rewards = []

    def exact(completions, answer, **_):
        scores = [float(text.strip() == right) for text, right in zip(completions, answer)]
        rewards.append(sum(scores) / len(scores))
        return scores

    tokenizer = AutoTokenizer.from_pretrained(WORK["model"], padding_side="left")
    model = AutoModelForCausalLM.from_pretrained(WORK["model"], dtype=torch.float32)
    trainer_class, config_class, own = trainer_of(WORK["algorithm"])
    with tempfile.TemporaryDirectory() as folder:
        trainer = trainer_class(
            model=model, reward_funcs=exact, args=config_class(**settings(folder, seed), **own),
            processing_class=tokenizer, train_dataset=dataset(),
        )
        trainer.train()
    if len(rewards) != WORK["iterations"]:
        raise SystemExit(f"TRL generated {len(rewards)} times, not {WORK['iterations']}")
    return rewards


def main():
    import torch
    import transformers

    torch.set_num_threads(WORK["threads"])
    transformers.logging.set_verbosity_error()
    say(about=", ".join(f"{name} {importlib.metadata.version(name)}" for name in ("trl", "transformers", "torch")))
    if WORK["whole_groups"]:
        keep_groups_together()
    for seed in WORK["seeds"]:
        say(seed=seed, rewards=curve(seed))


main()
