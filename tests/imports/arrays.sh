#!/usr/bin/env bash
# Arrays with comments between, defaults of variables, and the words of the command line at the end.
set -euo pipefail

MODEL_PATH=${MODEL_PATH:-./base}
TRAIN_FILE=${TRAIN_FILE:-./train.jsonl}
prompts=${PROMPTS:-8}
lengths=(8 6)

DATA=(
    algorithm.adv_estimator=grpo
    # One file, in Hydra's form of a list.
    data.train_files="['$TRAIN_FILE']"
    data.train_batch_size=${prompts}
    data.max_prompt_length=${lengths[0]}
    data.max_response_length=${lengths[1]}
)

ACTOR=(
    actor_rollout_ref.model.path="$MODEL_PATH"
    actor_rollout_ref.model.use_remove_padding=True
    actor_rollout_ref.actor.optim.lr=${LR:-1e-4}
    actor_rollout_ref.actor.ppo_mini_batch_size=${prompts}

    actor_rollout_ref.actor.use_dynamic_bsz=True
    actor_rollout_ref.actor.ppo_max_token_len_per_gpu=4096
)
ACTOR+=(actor_rollout_ref.actor.entropy_coeff=0)

ROLLOUT=(actor_rollout_ref.rollout.name=vllm actor_rollout_ref.rollout.n=4)

python3 -m verl.trainer.main_ppo \
    "${DATA[@]}" \
    "${ACTOR[@]}" \
    "${ROLLOUT[@]}" \
    trainer.logger='["console","wandb"]' \
    trainer.total_training_steps=2 \
    "$@"
