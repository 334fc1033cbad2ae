set -x
# Continued lines, both kinds of quotes, arithmetic, a pipe and a redirection.
prompt_length=$((2 * 4))
response_length=$(((prompt_length + 4) / 2))
name='continued lines'

PYTHONUNBUFFERED=1 python3 -u -m verl.trainer.main_ppo \
    algorithm.adv_estimator='rloo' \
    data.train_files=./train.jsonl \
    data.train_batch_size=8 data.max_prompt_length=$prompt_length \
    data.max_response_length=${response_length} \
    data.truncation='error' \
    actor_rollout_ref.model.path="./"'base' \
    actor_rollout_ref.actor.optim.lr=1e-4 \
    actor_rollout_ref.actor.ppo_mini_batch_size=4 \
    actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=2 \
    actor_rollout_ref.rollout.n=2 \
    actor_rollout_ref.rollout.max_model_len=$((prompt_length + response_length)) \
    trainer.experiment_name="$name $(date +%m%d)" \
    trainer.logger=console \
    trainer.n_gpus_per_node=1 trainer.nnodes=1 \
    trainer.total_training_steps=2 $@ 2>&1 | tee run.log
