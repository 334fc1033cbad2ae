# Names of earlier versions of verl, and two trainings in one script.
set -x
project=former

python3 -m verl.trainer.main_ppo \
    algorithm.adv_estimator=grpo data.train_files=./train.jsonl actor_rollout_ref.model.path=./base \
    trainer.total_training_steps=1

python3 -m verl.trainer.main_ppo \
    algorithm.adv_estimator=grpo \
    data.train_files=./train.jsonl data.train_batch_size=8 \
    data.max_prompt_length=8 data.max_response_length=6 \
    actor_rollout_ref.model.path=./base \
    actor_rollout_ref.actor.optim.lr=1e-4 \
    actor_rollout_ref.actor.optim.warmup_style=cosine \
    actor_rollout_ref.actor.optim.lr_warmup_steps=1 \
    actor_rollout_ref.actor.ppo_mini_batch_size=8 \
    actor_rollout_ref.rollout.n=4 \
    custom_reward_function.path=./score.py \
    custom_reward_function.name=compute_score \
    reward_model.enable=False reward_model.reward_manager=naive \
    trainer.project_name=${project} trainer.total_training_steps=2
