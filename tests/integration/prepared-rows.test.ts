/** Rows that `petrel data prepare` writes train with the scorers of their data sources. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { changedRecipe, inTheSameRun } from '../../api/runs/changed-recipe.ts';
import { cliHome } from '../cli.ts';
import { LoopUnderTest } from '../loop-under-test.ts';
import type { StartedRun } from '../loop-under-test.ts';

const loop = LoopUnderTest.onLentStack();
const cli = cliHome();
beforeAll(() => loop.up());
afterAll(async () => {
  cli.remove();
  await loop.remove();
});

const sources = {
  gsm8k: (i: number) => ({ question: `${i}+1=?`, answer: `${i}+1=${i + 1}\n#### ${i + 1}` }),
  math: (i: number) => ({ problem: `${i}+1=?`, solution: `\\boxed{${i + 1}}`, level: 'Level 1', type: 'Algebra' }),
};

describe.each(['gsm8k', 'math'] as const)('petrel data prepare %s', (name) => {
  const [from, out] = [join(loop.home, `${name}-source.jsonl`), join(loop.home, `${name}.jsonl`)];
  const prepare = () => cli.petrel('data', 'prepare', name, from, '--out', out);

  it('writes rows that train', async () => {
    writeFileSync(from, Array.from({ length: 8 }, (_, i) => `${JSON.stringify(sources[name](i))}\n`).join(''));
    expect((await prepare()).out).toMatch(/: 8 rows, /);
    const run = await loop.completed({
      model: { custom_chat_template: '{% for message in messages %}{{ message.content }}{% endfor %}' },
      data: { train_files: out, val_files: out, max_prompt_length: 120 },
      reward: { custom_reward_function: { path: null } },
      trainer: { total_training_steps: 2 },
    });
    const iterations = await loop.iterations(run);
    expect(iterations).toHaveLength(2);
    for (const { batch } of iterations) expect(batch.metrics['critic/score/mean']).toBeGreaterThanOrEqual(0);
    expect((await run.log.revision()).inputs.scorer).toMatchObject({ type: 'builtin' });
  });

  it('replaces no file, and leaves its own as it is', async () => {
    const written = readFileSync(out, 'utf8');
    await prepare();
    expect(readFileSync(out, 'utf8')).toBe(written);
    writeFileSync(out, 'mine');
    await expect(prepare()).rejects.toThrow(/expected a new file/);
    expect(readFileSync(out, 'utf8')).toBe('mine');
    await expect(cli.petrel('data', 'prepare', 'aime', from, '--out', out)).rejects.toThrow(/expected gsm8k or math/);
    await expect(cli.petrel('data', 'prepare', name, from, '--out', 'rows.parquet')).rejects.toThrow(
      /ends with \.jsonl/,
    );
  });
});

describe('data.train_max_samples', () => {
  const file = join(loop.home, 'many.jsonl');
  const recipe = (data: object) => ({ data: { train_files: file, train_max_samples: 8, ...data } });
  const inputsOf = async ({ log }: StartedRun) => (await log.revision()).inputs;
  beforeAll(() => {
    const row = (i: number) => ({
      prompt: `${i % 10}+${i % 7}=`,
      data_source: 'exact',
      reward_model: { ground_truth: `${i}` },
    });
    writeFileSync(file, Array.from({ length: 60 }, (_, i) => `${JSON.stringify(row(i))}\n`).join(''));
  });

  it('takes random rows that the seed chooses, or the first ones without data.shuffle', async () => {
    const created = await Promise.all(
      [{}, {}, { seed: 5 }, { shuffle: false }, { shuffle: false, seed: 5 }].map((data) => loop.create(recipe(data))),
    );
    const inputs = await Promise.all(created.map(inputsOf));
    expect(inputs.map(({ trainRows }) => trainRows)).toEqual([8, 8, 8, 8, 8]);
    const [one, again, otherSeed, first, firstToo] = inputs.map(({ train }) => train);
    expect(again).toBe(one);
    expect(firstToo).toBe(first);
    expect(new Set([one, otherSeed, first]).size).toBe(3);
  });

  it('leaves a run the rows that it has, also those of an older version, when the files are named again', async () => {
    const ports = { store: loop.store, home: loop.home, env: process.env, now: new Date(), say: () => {} };
    const again = async (run: StartedRun, ...overrides: string[]) => {
      const before = await run.log.revision();
      const words = { overrides: [`data.train_files=${file}`, ...overrides], file: undefined, cwd: loop.home };
      const changed = await changedRecipe(words, before, inTheSameRun, ports);
      expect((changed ?? before).inputs.train).toBe(before.inputs.train);
    };
    await again(await loop.create(recipe({})), 'actor.optim.lr=0.001');
    // An older version took the first rows with data.shuffle, too.
    await again(await loop.create(recipe({ shuffle: false })), 'data.shuffle=true');
  });
});
