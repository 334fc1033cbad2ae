import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { PetrelError } from '../../../core/errors.ts';
import { importRecipe } from './import-recipe.ts';
import { measureImports } from './measure.ts';
import type { ImportInputs } from './read-source.ts';

const folder = mkdtempSync(join(tmpdir(), 'petrel-import-'));
afterAll(() => rmSync(folder, { recursive: true }));

function write(name: string, text: string): string {
  mkdirSync(dirname(join(folder, name)), { recursive: true });
  writeFileSync(join(folder, name), text);
  return name;
}
const imported = (name: string, text: string, inputs: Partial<ImportInputs> = {}) =>
  importRecipe(write(name, text), { env: new Map(), words: [], ...inputs }, folder);
const call = 'python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo actor_rollout_ref.rollout.n=4';

describe('the written recipe', () => {
  it('is YAML with the keys of the report, whatever the values and names contain', () => {
    const { text, tree } = imported(
      'odd.yaml',
      JSON.stringify({
        actor_rollout_ref: { model: { path: 'null', custom_chat_template: 'a: b # c\n"{{ x }}"\u2028' } },
        data: { train_files: ['yes', '0x1f', '- a', ''], apply_chat_template_kwargs: { 'a: b': [1, { c: null }] } },
        'un\nknown: x': 1,
        trainer: { project_name: '1e3' },
      }),
    );
    expect(parse(text)).toEqual(tree);
  });

  it('names what is left out, and never two lines for one', () => {
    const { text } = imported('left.sh', `${call} actor_rollout_ref.rollout.gpu_memory_utilization=0.5`);
    expect(text).toContain('#     actor_rollout_ref.rollout.gpu_memory_utilization');
  });
});

describe('the engines of a recipe', () => {
  it('stand in it with the reason', () => {
    const script = `${call} actor_rollout_ref.rollout.name=vllm trainer.n_gpus_per_node=2`;
    const { text, tree } = imported('gpus.sh', script, { engine: 'torch' });
    expect(parse(text)).toEqual(tree);
    expect(text).toMatch(/# asked for.*\n {2}engine: torch\n.*one process of torch for each GPU\n {2}fsdp_size: 2/);
    expect(imported('gpus.sh', script).text).not.toContain('engine: torch');
  });
});

describe('a supervised run', () => {
  it('is known by its module, or by the optimiser at the top of a YAML', () => {
    const { tree } = imported(
      'sft.sh',
      'torchrun --nproc_per_node=8 -m verl.trainer.sft_trainer data.train_files=a optim.lr=1e-4 model.path=org/m data.max_length=64',
    );
    expect(tree).toMatchObject({ kind: 'sft', actor: { optim: { lr: 1e-4 } }, data: { max_length: 64 } });
    const yaml = imported('sft.yaml', 'optim: {lr: 1.0e-4}\nmodel: {partial_pretrain: org/m}\ndata: {train_files: a}');
    expect(yaml.tree).toMatchObject({ kind: 'sft', model: { path: 'org/m' } });
  });
});

describe('a script that asks for arguments', () => {
  const script = [
    'if [ "$#" -lt 2 ]; then',
    '    echo "Usage: run_qwen_05_peft.sh <nproc_per_node> <save_path> [other_configs...]"',
    '    exit 1',
    'fi',
    'nproc_per_node=$1',
    'save_path=$2',
    'shift 2',
    'torchrun --standalone --nproc_per_node=$nproc_per_node -m verl.trainer.fsdp_sft_trainer \\',
    '    data.train_files=a.parquet optim.lr=1e-4 model.partial_pretrain=org/m \\',
    '    trainer.default_local_dir=$save_path trainer.total_epochs=1 $@',
  ].join('\n');

  it('is imported without them, and a key that they set is left out with their names', () => {
    const { tree, keys, notes } = imported('args.sh', script, { words: ['trainer.total_epochs=2'] });
    expect(tree).toMatchObject({ kind: 'sft', actor: { optim: { lr: 1e-4 } }, trainer: { total_epochs: 2 } });
    expect(tree).not.toHaveProperty('store');
    expect(keys.find(({ outcome }) => outcome === 'unreadable')).toMatchObject({
      verl: 'trainer.default_local_dir',
      note: expect.stringContaining('$2 (--args … …), which is not given (line 6)'),
    });
    expect(notes).toEqual([{ line: 1, text: expect.stringContaining('the script ends here without its arguments') }]);
  });

  it('takes them from the command line', () => {
    const inputs = { args: ['8', 'out'], words: ['trainer.total_epochs=2'] };
    const { tree, notes } = imported('args.sh', script, inputs);
    expect(tree).toMatchObject({ store: 'out', trainer: { total_epochs: 2 } });
    expect(notes).toEqual([]);
    expect(() => imported('args.sh', script, { args: ['8'], words: [] })).toThrow('the script ends in line 3');
  });

  it('is refused with the line where it ends, if it ends for another reason', () => {
    expect(() => imported('ends.sh', `echo later\nexit 0\n${call}`)).toThrow('the script ends in line 2');
  });
});

it('overrides stand last where a script does not pass its arguments on', () => {
  const words = ['actor_rollout_ref.rollout.n=8', 'trainer.total_epochs=2'];
  const wanted = { rollout: { n: 8 }, trainer: { total_epochs: 2 } };
  expect(imported('closed.sh', call, { words }).tree).toMatchObject(wanted);
  expect(imported('open.sh', `${call} "$@"`, { words }).tree).toMatchObject(wanted);
});

describe('a YAML', () => {
  it('takes files of its folder only', () => {
    write('outside.yaml', 'algorithm: {adv_estimator: rloo}');
    write('inside/group/one.yaml', '# @package _global_\nactor_rollout_ref: {rollout: {n: 3}}');
    write('inside/group/two.yaml', '# @package _global_\nactor_rollout_ref: {rollout: {n: 5}}');
    const { tree, notes } = imported(
      'inside/main.yaml',
      'defaults: [../outside, /group: one, override /group: two, optional x: null]\nalgorithm: {adv_estimator: grpo}',
    );
    expect(tree).toMatchObject({ algorithm: { adv_estimator: 'grpo' }, rollout: { n: 5 } });
    expect(notes.map(({ text }) => text).join()).toContain('../outside is not beside this file');
  });

  it('is not named beside its own lines, but the files beside it are', () => {
    write('placed/group/one.yaml', '# @package _global_\n\nodd: {key: 1}');
    const { losses } = imported('placed/main.yaml', 'defaults: [/group: one]\nown: {key: 1}\nalgorithm: {lam: 1}');
    expect(losses).toEqual([
      { verl: 'own.key', value: 1, line: 2, why: expect.any(String) },
      { verl: 'odd.key', value: 1, file: 'placed/group/one.yaml', line: 3, why: expect.any(String) },
    ]);
  });

  it('that includes itself comes to an end', () => {
    expect(imported('loop.yaml', 'defaults: [loop, loop]\nalgorithm: {adv_estimator: grpo}').counts.keys).toBe(1);
  });
});

describe('is refused with an error for people:', () => {
  const bomb = `a: &a [x, x]\n${Array.from({ length: 40 }, (_, i) => `b${i}: &b${i} [*${i === 0 ? 'a' : `b${i - 1}`}, *${i === 0 ? 'a' : `b${i - 1}`}]`).join('\n')}`;
  it.each([
    ['empty.sh', ''],
    ['nothing.sh', 'echo hello'],
    ['two.sh', `${call}\n${call}`],
    ['list.yaml', '- 1\n- 2'],
    ['text.yaml', 'just text'],
    ['broken.yaml', 'a: [1'],
    ['deep.yaml', '['.repeat(200_000)],
    ['deeper.yaml', '{a: '.repeat(5000)],
    ['bomb.yaml', bomb],
    ['large.yaml', `a: ${'x'.repeat(1_000_001)}`],
    ['binary.sh', `${call}\0`],
    ['other.yaml', 'title: x\non: push'],
  ])('%s', (name, text) => {
    expect(() => imported(name, text)).toThrow(PetrelError);
  });
});

it('many files are counted, and those that cannot be read are named', () => {
  const files = [
    write('good.sh', `${call} critic.strategy=fsdp ray_kwargs.x=1`),
    write('bad.sh', 'echo'),
    'missing.sh',
  ];
  const { totals, left, files: measured } = measureImports(files, { env: new Map(), words: [] }, folder);
  expect(totals).toMatchObject({ keys: 4, mapped: 3, none: 1 });
  expect(left).toEqual([expect.objectContaining({ verl: 'ray_kwargs.x', files: 1 })]);
  expect(measured.map((one) => 'error' in one)).toEqual([false, true, true]);
});
