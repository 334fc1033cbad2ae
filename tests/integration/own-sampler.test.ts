// @module-tag long
/** A sampler of the user's own: it weighs the rows after every batch, and its answers are part of the records. */
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { createFork, originAt } from '../../api/runs/fork.ts';
import type { Tree } from '../../core/recipe/index.ts';
import { drawsPast } from '../../core/rl/draws.ts';
import { chooseByWeight } from '../../core/rl/weighted-choice.ts';
import { lastSampling } from '../../core/wire/own-sampler.ts';
import { getJsonBlob } from '../../log/objects/blobs.ts';
import { runWords } from '../cli.ts';
import { essences } from '../killed-run.ts';
import { onePool } from '../loop-under-test.ts';
import { testSameBits } from '../same-bits.ts';
import type { Iteration, StartedRun } from '../loop-under-test.ts';
import { loopWithFaults } from '../loop-with-faults.ts';

/** Rows that had a seven come less often; every third row never comes. The state counts calls and remembers answers. */
const text = `
interface State { calls: number; weights: number[]; rows: number }
export const sampler = {
  deterministic: true,
  compute({ facts, rows, results, state }: any) {
    const before = (state ?? { calls: 0, weights: facts!.map((_, row) => (row % 3 === 2 ? 0 : 1)), rows }) as State;
    for (const { row, scores } of results) before.weights[row] = scores.some((score) => score! > 0) ? 0.25 : 4;
    return { weights: Float64Array.from(before.weights), state: { ...before, calls: before.calls + 1 } };
  },
};
`;

const { loop, injector } = loopWithFaults();
const file = join(loop.home, 'my-sampler.ts');
const petrel = (...words: string[]) => runWords(loop.home, words);
let recipe: Tree;
let undisturbed: StartedRun;
beforeAll(async () => {
  await loop.up(onePool);
  writeFileSync(file, text);
  recipe = {
    actor: { ppo_mini_batch_size: 2 },
    data: { train_max_samples: 12, gen_batch_size: 6, sampler: file },
    trainer: { total_training_steps: 6, save_freq: 2 },
  };
  undisturbed = await loop.completed(recipe);
});

/** What the sampler said before the batch. */
async function saidBefore({ runId, log }: StartedRun, { batch }: Iteration) {
  const { sampler, train, trainRows } = (await log.revision(batch.revision)).inputs;
  const read = (digest: string) => getJsonBlob(loop.store, runId, digest);
  return lastSampling(read, { sampler: sampler!, train, trainRows }, batch.before);
}

describe('a run with a sampler of the user’s own (seed 42)', () => {
  it('draws the prompts of a batch by its weights, and passes over rows with the weight 0', async () => {
    for (const made of await loop.iterations(undisturbed)) {
      const { batch } = made;
      const { weights, state } = await saidBefore(undisturbed, made);
      expect(state).toMatchObject({ calls: batch.iteration, rows: 12 });
      const stream = { rows: 12, seed: 42, shuffle: true };
      const next = drawsPast(stream, batch.before.cursor, 6, [], ({ row }) => weights[row] === 0);
      const numbers = next.map(({ draw }) => draw);
      const chosen = chooseByWeight(
        next.map(({ row }) => weights[row]!),
        numbers,
        4,
        [42, 4],
      );
      expect(batch.draws.map(({ draw }) => draw)).toEqual(chosen.map((i) => numbers[i]));
      expect(batch.draws.every(({ row }) => row % 3 !== 2)).toBe(true);
      expect(batch.after.cursor).toBe(numbers.at(-1)! + 1);
    }
  });

  it('tells it what the responses scored', async () => {
    const made = await loop.iterations(undisturbed);
    const said = await Promise.all(made.map((one) => saidBefore(undisturbed, one)));
    for (const [k, { batch }] of made.slice(0, -1).entries())
      for (const { row } of batch.draws) expect([0.25, 4]).toContain(said[k + 1]?.weights[row]);
  });

  testSameBits(() => ({ loop, injector, recipe, undisturbed }));

  it('needs no file after its start, and gives a fork what it said', async () => {
    const run = await loop.create(recipe);
    rmSync(file);
    await loop.drive(run);
    await loop.reaches(run, 'completed');
    writeFileSync(file, text);
    const { runId, log } = run;
    const found = { runId, log, record: await log.run() };
    const forked = await createFork(found, await originAt(found, 4), await log.revision(1), undefined, new Date());
    const fork = { runId: forked.runId, log: forked.log };
    loop.runs.add(fork);
    await loop.drive(fork);
    await loop.reaches(fork, 'completed');
    const states = (made: Awaited<ReturnType<typeof essences>>) => made.map(({ state, draws }) => ({ state, draws }));
    expect(states(await essences(loop, fork))).toEqual(states((await essences(loop, undisturbed)).slice(4)));
  });
});

describe('a sampler that fails', () => {
  it('in the middle of a run pauses it; a resume with the corrected file begins anew', async () => {
    const path = join(loop.home, 'fails.ts');
    const failing = text.replace(
      'for (const',
      'if (before.calls === 3) throw new RangeError("no more ideas");\n    for (const',
    );
    writeFileSync(path, failing);
    const run = await loop.start({ ...recipe, data: { train_max_samples: 12, sampler: path } });
    const { reason } = await loop.reaches(run, 'paused');
    expect(reason).toMatchObject({
      code: 'OwnModuleFailed',
      message: './fails.ts: RangeError: no more ideas',
      hint: expect.stringContaining('data.sampler=./fails.ts --accept'),
    });
    writeFileSync(path, text);
    await petrel('resume', run.runId, `data.sampler=${path}`, '--accept', '--wait');
    const made = await loop.iterations(run);
    expect(made).toHaveLength(6);
    const resumed = made.findIndex(({ batch }) => batch.revision === 2);
    expect((await saidBefore(run, made[resumed]!)).state).toMatchObject({ calls: 1 });
    expect((await saidBefore(run, made.at(-1)!)).state).toMatchObject({ calls: 1 + made.length - 1 - resumed });
  });

  it.each([
    ['throws', 'throw new RangeError("at once");', /RangeError: at once/],
    ['answers differently each time', 'return { weights: new Array(rows).fill(Math.random()) };', /different results/],
    ['leaves no row', 'return { weights: new Array(rows).fill(0) };', /all weights are 0/],
    ['is not declared deterministic', undefined, /is not declared deterministic/],
  ])('when the run is created is refused: it %s', async (_, body, message) => {
    const path = join(loop.home, 'refused.ts');
    const wrong =
      body === undefined
        ? text.replace('deterministic: true,', '')
        : `export const sampler = { deterministic: true, compute({ rows }) { ${body} } };`;
    writeFileSync(path, wrong);
    await expect(loop.create({ ...recipe, data: { sampler: path } })).rejects.toThrow(message);
  });
});
