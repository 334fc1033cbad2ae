import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { importRecipe } from './import-recipe.ts';

const folder = mkdtempSync(join(tmpdir(), 'petrel-launch-'));
afterAll(() => rmSync(folder, { recursive: true }));

function write(name: string, text: string): string {
  mkdirSync(dirname(join(folder, name)), { recursive: true });
  writeFileSync(join(folder, name), text);
  return name;
}
const imported = (name: string, text: string, cwd = folder) =>
  importRecipe(join(folder, write(name, text)), { env: new Map(), words: [] }, cwd);
const call = (options: string, module = 'verl.trainer.main_ppo') =>
  `python3 -m ${module} ${options} data.train_files=a.parquet actor_rollout_ref.model.path=org/m`;

const own =
  'defaults:\n  - ppo_trainer\n  - _self_\nalgorithm: {adv_estimator: rloo}\nactor_rollout_ref: {rollout: {n: 3}}\n';
write('project/config/own.yaml', own);

describe('a configuration that a script names', () => {
  it.each([
    ['--config-path=config --config-name=own', ''],
    ['--config-path config --config-name own.yaml', ''],
    ['-cp config -cn own', ''],
    ['-cp=./config -cn=own', ''],
    ['--config-p=config --config-n=own', ''],
    ['--config-path="$CONFIG_PATH" --config-name="own"', 'PROJECT_DIR="$(pwd)"\nCONFIG_PATH="$PROJECT_DIR/config"\n'],
    ['--config-path=$(dirname $0)/config --config-name=own', ''],
    ['--config-dir=config --config-name=own', ''],
    ['-cd config -cn own', ''],
    ['--config-path=../config --config-name=own', 'cd scripts\n'],
  ])('by %s is read from beside the script', (options, before) => {
    const script = options.includes('../') ? 'project/scripts/run.sh' : 'project/run.sh';
    const { tree, losses } = imported(script, before + call(options));
    expect(tree).toMatchObject({ algorithm: { adv_estimator: 'rloo' }, rollout: { n: 3 } });
    expect(losses).toEqual([]);
  });

  it('is read from an absolute path, and from where the script runs', () => {
    const absolute = imported('elsewhere/run.sh', call(`--config-path=${folder}/project/config --config-name=own`));
    expect(absolute.tree).toMatchObject({ rollout: { n: 3 } });
    const options = call('--config-path=config --config-name=own');
    expect(imported('far/away/run.sh', options, join(folder, 'project')).tree).toMatchObject({ rollout: { n: 3 } });
  });

  it('is below the overrides of the call, and its groups are read', () => {
    write('groups/config/main.yaml', 'defaults:\n  - _self_\n  - method: one\nalgorithm: {gamma: 0.5}\n');
    write('groups/config/method/one.yaml', '# @package _global_\nalgorithm: {adv_estimator: rloo, gamma: 0.9}\n');
    write('groups/config/method/two.yaml', '# @package _global_\nalgorithm: {adv_estimator: opo}\n');
    const options = '--config-path=config --config-name=main algorithm.lam=0.7';
    expect(imported('groups/a.sh', call(options)).tree).toMatchObject({
      algorithm: { adv_estimator: 'rloo', gamma: 0.9, lam: 0.7 },
    });
    expect(imported('groups/b.sh', call(`${options} algorithm.gamma=0.8`)).tree).toMatchObject({
      algorithm: { gamma: 0.8 },
    });
  });

  it('of several turns is refused by plan', () => {
    write('turns/config/m.yaml', 'actor_rollout_ref: {rollout: {multi_turn: {enable: True}}}');
    const { tree, problems, text } = imported('turns/run.sh', call('--config-path=config --config-name=m'));
    expect(tree).toMatchObject({ rollout: { multi_turn: { enable: true } } });
    expect(problems.map(({ path }) => path)).toContain('rollout.multi_turn.enable');
    expect(text.split('\n')[0]).toContain('NOT AS IN turns/run.sh');
  });

  it('is named beside its lines, and so are the files that it is composed of', () => {
    const turns = 'actor_rollout_ref:\n  rollout:\n    multi_turn:\n      enable: True\n';
    write('places/config/meth.yaml', `defaults: [part, lost, _self_]\n${turns}`);
    write('places/config/part.yaml', 'odd:\n  key: 1\ntrainer:\n  total_epochs: ???\n');
    const script = call('--config-path=config --config-name=meth \\\n  actor_rollout_ref.actor.odd_loss=1');
    const { losses, keys, notes, text } = imported('places/s1.sh', script);
    expect(losses).toMatchObject([
      { file: 'places/config/meth.yaml', why: expect.stringContaining('lost is not beside this file') },
      { file: 'places/config/part.yaml', line: 2, verl: 'odd.key' },
      { file: 'places/config/meth.yaml', line: 5, verl: 'actor_rollout_ref.rollout.multi_turn.enable' },
      { line: 2, verl: 'actor_rollout_ref.actor.odd_loss' },
    ]);
    expect(losses[3]).not.toHaveProperty('file');
    expect(keys.find(({ verl }) => verl === 'odd.key')).toMatchObject({ file: 'places/config/part.yaml', line: 2 });
    expect(notes).toContainEqual(expect.objectContaining({ file: 'places/config/part.yaml', line: 4 }));
    expect(text).toContain('\n#   places/config/meth.yaml, line 5: actor_rollout_ref.rollout.multi_turn.enable');
    expect(text).toContain('\n#   places/config/meth.yaml: defaults: lost is not beside this file');
    expect(text).toContain('\n#   line 2: actor_rollout_ref.actor.odd_loss');
  });

  it('has no line where the call sets the key again', () => {
    write('again/config/m.yaml', 'algorithm:\n  odd: 1\n');
    const { losses } = imported('again/run.sh', call('--config-path=config --config-name=m algorithm.odd=2'));
    expect(losses).toMatchObject([{ verl: 'algorithm.odd', value: 2, line: 1 }]);
    expect(losses[0]).not.toHaveProperty('file');
  });

  it('that is not there is named in the first line', () => {
    const { losses, text } = imported('alone/run.sh', call('--config-path="$(pwd)/x/config" --config-name=lost'));
    expect(losses[0]).toMatchObject({ line: 1 });
    expect(losses[0]?.why).toContain('--config-path /x/config --config-name lost is not beside the script');
    expect(text.split('\n')[0]).toContain('NOT AS IN alone/run.sh');
  });

  it('of verl itself needs no file, and says nothing where there is one', () => {
    for (const name of ['ppo_trainer', 'ppo_megatron_trainer.yaml'])
      expect(imported('alone/own.sh', call(`--config-path=config --config-name=${name}`)).losses).toEqual([]);
    write('stock/config/ppo_trainer.yaml', 'algorithm: {adv_estimator: gae, lam: 1.0}\nray: {x: 1}\ncritic: {odd: 2}');
    const { losses, keys } = imported('stock/run.sh', call('--config-path=config --config-name=ppo_trainer'));
    expect(losses).toEqual([]);
    expect(keys.map(({ verl }) => verl)).toEqual(['data.train_files', 'actor_rollout_ref.model.path']);
  });

  it('holds the values of its date where they are not today’s', () => {
    write('old/config/ppo_trainer.yaml', 'actor_rollout_ref: {actor: {entropy_coeff: 0.001}}');
    const { tree } = imported('old/run.sh', call('--config-path=config --config-name=ppo_trainer'));
    expect(tree).toMatchObject({ actor: { entropy_coeff: 0.001 } });
  });
});

describe('a module of verl’s recipes', () => {
  it.each([
    ['recipe.dapo.main_dapo', { reward: { reward_manager: { name: 'dapo' } } }],
    [
      'recipe.prime.main_prime',
      { algorithm: { adv_estimator: 'prime' }, data: { oversample_factor: 4 }, rollout: { n: 4 } },
    ],
    ['recipe.sppo.main_sppo', { algorithm: { adv_estimator: 'sppo' }, actor: { policy_loss: { loss_mode: 'sppo' } } }],
    ['recipe.flowrl.main_flowrl', { actor: { policy_loss: { loss_mode: 'flowrl' } } }],
    ['recipe.spin.main_spin', { actor: { policy_loss: { loss_mode: 'online_dpo' } } }],
  ])('%s brings its method', (module, tree) => {
    expect(imported('module.sh', call('algorithm.adv_estimator=rloo', module)).tree).toMatchObject(tree);
  });

  it.each(['recipe.fully_async_policy.fully_async_main', 'recipe.one_step_off_policy.main_ppo', 'my.own.main_grpo'])(
    '%s does what no recipe says',
    (module) => expect(imported('lost.sh', call('', module)).losses[0]?.why).toContain(module),
  );

  it('that nobody knows is a loss, also where its configuration is known', () => {
    const own = imported('lost.sh', call('--config-name=ppo_trainer', 'my.own.main_grpo'));
    expect(own.losses.map(({ why }) => why)).toEqual([expect.stringContaining('my.own.main_grpo is no module')]);
  });
});
