import { describe, expect, it } from 'vitest';
import { Entries } from './entries.ts';
import { FORMER_NAMES, SUPERVISED_NAMES } from './former-names.ts';
import { importEntries } from './map-entries.ts';
import { plainPath } from './names.ts';
import type { ImportResult } from './outcome.ts';

const given = ['data.train_files=a.jsonl', 'actor_rollout_ref.model.path=org/m', 'algorithm.adv_estimator=grpo'];

function imported(overrides: readonly string[]): ImportResult {
  const entries = new Entries();
  for (const text of [...given, 'actor_rollout_ref.rollout.n=4', ...overrides]) entries.override({ text });
  return importEntries(entries, { kind: 'rl', env: new Map() });
}
const lossesOf = (...overrides: string[]) => imported(overrides).losses.map(({ verl }) => verl);

describe('names of other dates', () => {
  it.each([
    ['custom_reward_function.overlong_buffer.len=512', 'reward.overlong_buffer.len', 512],
    ['reward_model.overlong_buffer.len=512', 'reward.overlong_buffer.len', 512],
    ['+reward_model.reward_kwargs.overlong_buffer_cfg.len=512', 'reward.overlong_buffer.len', 512],
    ['reward.reward_kwargs.overlong_buffer_cfg.penalty_factor=2', 'reward.overlong_buffer.penalty_factor', 2],
    ['+reward_model.reward_kwargs.max_k=3', 'reward.reward_kwargs.max_k', 3],
    ['reward_manager.name=dapo', 'reward.reward_manager.name', 'dapo'],
    ['reward_model.reward_manager=dapo', 'reward.reward_manager.name', 'dapo'],
    ['custom_reward_function.path=s.py', 'reward.custom_reward_function.path', 's.py'],
    ['custom_reward_function.reward_kwargs.scale=2', 'reward.reward_kwargs.scale', 2],
    ['reward_model.prime_norm=none', 'reward.prime.prime_norm', 'none'],
    ['reward_model.model.beta_train=0.1', 'reward.prime.beta_train', 0.1],
    ['reward_model.model.optim.lr=1e-5', 'reward.prime.optim.lr', 1e-5],
    ['actor_rollout_ref.actor.loss_mode=clip_cov', 'actor.policy_loss.loss_mode', 'clip_cov'],
    ['actor_rollout_ref.actor.clip_cov_lb=2', 'actor.policy_loss.clip_cov_lb', 2],
    ['algorithm.sppo_eta=2', 'actor.policy_loss.sppo_eta', 2],
    ['critic.kl_ctrl.kl_coef=0.002', 'algorithm.kl_ctrl.kl_coef', 0.002],
    ['actor_rollout_ref.actor.optim.warmup_style=cosine', 'actor.optim.lr_scheduler_type', 'cosine'],
  ])('%s is read as %s', (override, petrel, written) => {
    const { keys, losses } = imported([override]);
    expect(keys.find((key) => key.petrel === petrel)).toMatchObject({ petrel, written });
    expect(losses).toEqual([]);
  });

  it('have their dates in the recipe', () => {
    const { keys } = imported(['reward_model.overlong_buffer.len=512']);
    expect(keys.at(-1)).toMatchObject({
      outcome: 'moved',
      note: 'verl’s name from 2025-04 until 0.7 (2026-01)',
    });
  });

  it('are all reached', () => {
    const example = (pattern: string) =>
      pattern
        .replaceAll(/\(([^()]*)\)/g, (_, choices: string) => choices.split('|').at(-1) ?? '')
        .replaceAll('**', 'x.y');
    for (const [kind, rows] of [['rl', FORMER_NAMES] as const, ['sft', SUPERVISED_NAMES] as const])
      for (const row of rows) expect(plainPath(example(row.former), kind).former, row.former).toBe(row);
  });

  it('with two values for one key are a loss, whichever decides', () => {
    const { losses, tree } = imported([
      'reward_model.overlong_buffer.len=512',
      'reward.reward_kwargs.overlong_buffer_cfg.len=1024',
    ]);
    expect(losses).toMatchObject([{ verl: 'reward_model.overlong_buffer.len', value: 512 }]);
    expect(tree).toMatchObject({ reward: { overlong_buffer: { len: 1024 } } });
  });

  it('are found by a reference to their section', () => {
    const { tree } = imported([
      'reward_model.overlong_buffer.len=512',
      'reward_model.overlong_buffer.enable=True',
      'reward_model.reward_kwargs.overlong_buffer_cfg=${reward_model.overlong_buffer}',
    ]);
    expect(tree).toMatchObject({ reward: { overlong_buffer: { enable: true, len: 512 } } });
  });
});

describe('what changes what is learned and is not in the recipe', () => {
  it.each([
    ['algorithm.filter_groups.max_inflight_gen_batches=3', 'algorithm.filter_groups.max_inflight_gen_batches'],
    ['actor_rollout_ref.actor.clip_raito=0.1', 'actor_rollout_ref.actor.clip_raito'],
    ['+my_method.strength=3', 'my_method.strength'],
    ['algorithm.gamma=fast', 'algorithm.gamma'],
    ['algorithm.gamma=${not.set}', 'algorithm.gamma'],
    ['data.custom_cls.path=mine.py', 'data.custom_cls.path'],
    ['trainer.ref_update_freq=1', 'trainer.ref_update_freq'],
    ['reward_model.reward_manager=mine', 'reward_model.reward_manager'],
    ['critic.ppo_epochs=3', 'critic.ppo_epochs'],
    ['trainer.total_epochs=many', 'trainer.total_epochs'],
  ])('%s is named', (override, verl) => {
    expect(lossesOf(override, 'actor_rollout_ref.actor.ppo_epochs=1')).toEqual([verl]);
  });

  it.each([
    'actor_rollout_ref.rollout.gpu_memory_utilization=0.5',
    'actor_rollout_ref.actor.fsdp_config.param_offload=True',
    'trainer.logger=[wandb]',
    'trainer.project_name=p',
    'data.custom_cls.path=null',
    'actor_rollout_ref.rollout.multi_turn.enable=False',
    'trainer.ref_update_freq=-1',
    'ray_kwargs.ray_init.num_cpus=3',
    'trainer.some_new_switch=1',
  ])('%s is no loss', (override) => expect(lossesOf(override)).toEqual([]));
});

describe('a training in several turns', () => {
  it.each([
    'actor_rollout_ref.rollout.multi_turn.enable=True',
    'actor_rollout_ref.rollout.agent.default_agent_loop=tool_agent',
    'actor_rollout_ref.rollout.agent.agent_loop_config_path=agent.yaml',
    'actor_rollout_ref.rollout.multi_turn.tool_config_path=tools.yaml',
    'actor_rollout_ref.rollout.multi_turn.interaction_config_path=i.yaml',
    '+actor_rollout_ref.rollout.chat_scheduler=mine.Scheduler',
    'env.env_name=alfworld',
  ])('by %s keeps the key that no run can use yet', (override) => {
    const { tree, problems, losses } = imported([override]);
    expect(tree).toMatchObject({ rollout: { multi_turn: { enable: true } } });
    expect(problems.map(({ path }) => path)).toContain('rollout.multi_turn.enable');
    expect(losses.map(({ why }) => why).join()).toContain('several turns are not built yet');
  });

  it('is none when it is turned off', () => {
    const { tree, losses } = imported([
      'actor_rollout_ref.rollout.multi_turn.enable=False',
      'actor_rollout_ref.rollout.multi_turn.tool_config_path=tools.yaml',
    ]);
    expect(tree).not.toHaveProperty('rollout.multi_turn');
    expect(losses).toEqual([]);
  });
});
