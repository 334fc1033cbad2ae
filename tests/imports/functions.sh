#!/usr/bin/env bash
# A function, a case, a here-document, and a file name that is taken apart.
DEVICE=${DEVICE:-$(python3 -c 'import torch; print("gpu")')}
model=./base
rows=./train.jsonl.unpacked

case "$DEVICE" in
    gpu | cuda) micro=2 ;;
    npu) micro=1 ;;
    *)
        echo "which device?"
        exit 1
        ;;
esac

cat <<EOF > /dev/null
python3 -m verl.trainer.main_ppo data.train_batch_size=1
EOF

train() {
    local steps=$1
    shift
    python3 -m verl.trainer.main_ppo \
        data.train_files="${rows%.*}" \
        data.train_batch_size=8 data.max_prompt_length=8 data.max_response_length=6 \
        actor_rollout_ref.model.path=$model \
        actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=${micro} \
        trainer.total_training_steps=$steps "$@"
}

train 2 \
    algorithm.adv_estimator=reinforce_plus_plus_baseline \
    actor_rollout_ref.actor.ppo_mini_batch_size=8 \
    actor_rollout_ref.actor.optim.lr=1e-4 \
    actor_rollout_ref.rollout.n=2
