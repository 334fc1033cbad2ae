#!/bin/bash
# PPO with a critic; conditions on values that are known.
USE_KL=${USE_KL:-True}
STRATEGY=fsdp

EXTRA=()
if [ "$USE_KL" = "True" ] && [[ "$STRATEGY" != megatron ]]; then
    EXTRA+=(actor_rollout_ref.actor.use_kl_loss=True actor_rollout_ref.actor.kl_loss_coef=0.01)
elif [ -n "$STRATEGY" ]; then
    EXTRA+=(actor_rollout_ref.actor.use_kl_loss=False)
else
    echo "no strategy" >&2
    exit 1
fi
[ ${#EXTRA[@]} -gt 0 ] && steps=2 || steps=1

python -m verl.trainer.main_ppo \
    algorithm.adv_estimator=gae algorithm.gamma=1.0 algorithm.lam=0.95 \
    data.train_files=./train.jsonl data.train_batch_size=8 \
    data.max_prompt_length=8 data.max_response_length=6 \
    actor_rollout_ref.model.path=./base \
    actor_rollout_ref.actor.strategy=$STRATEGY \
    actor_rollout_ref.actor.optim.lr=1e-4 \
    actor_rollout_ref.actor.ppo_mini_batch_size=8 \
    actor_rollout_ref.rollout.n=1 \
    critic.model.path=./base critic.optim.lr=1e-3 critic.ppo_micro_batch_size_per_gpu=4 \
    critic.cliprange_value=0.5 \
    trainer.critic_warmup=0 trainer.total_training_steps=$steps \
    "${EXTRA[@]}"
