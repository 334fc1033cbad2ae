# Keys that are added, forced and removed; values that are mappings; blocks with comments between.
common="algorithm.adv_estimator=grpo data.train_files=./train.jsonl"
sizes="data.train_batch_size=8 data.max_prompt_length=8 data.max_response_length=6"

python3 -m verl.trainer.main_ppo $common $sizes \
    actor_rollout_ref.model.path=./base \
    +actor_rollout_ref.model.override_config.attn_implementation=eager \
    ++actor_rollout_ref.actor.optim.lr=1e-4 \
    actor_rollout_ref.actor.ppo_mini_batch_size=8 \
    actor_rollout_ref.actor.clip_ratio_low=0.2 actor_rollout_ref.actor.clip_ratio_high=0.28 \
    actor_rollout_ref.rollout.n=4 \
    +data.apply_chat_template_kwargs.enable_thinking=False \
    'actor_rollout_ref.rollout.val_kwargs={temperature: 0.6, top_p: 0.95, do_sample: true, n: 1}' \
    trainer.val_before_train=False \
    actor_rollout_ref.rollout.temperature=0.5 \
    ~actor_rollout_ref.rollout.temperature \
    trainer.total_training_steps=2
