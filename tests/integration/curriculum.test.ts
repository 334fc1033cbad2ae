/** A curriculum: prompts that the policy has solved are passed over for some passes. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Tree } from '../../core/recipe/index.ts';
import type { Counters } from '../../core/records/schema.ts';
import { curriculumBlob, decodeCurriculum } from '../../core/wire/curriculum.ts';
import { getJsonBlob } from '../../log/objects/blobs.ts';
import { essencesOf } from '../essences.ts';
import { InProcessLoop } from '../in-process-loop.ts';
import type { RunInProcess } from '../in-process-loop.ts';

const recipe: Tree = {
  // 6 rows: each pass over them takes one and a half batches.
  data: { train_max_samples: 6, curriculum: { enable: true, metric: 'acc', solved: 0.5, revisit: 3 } },
  trainer: { total_training_steps: 6, save_freq: 2 },
};

const loop = new InProcessLoop(({ solutionStr }) => ({ score: 1, acc: solutionStr.includes('7') }));
let undisturbed: RunInProcess;
beforeAll(async () => {
  await loop.up();
  undisturbed = await loop.completed(recipe);
});
afterAll(() => loop.remove());

async function stateOf({ log: { runId } }: RunInProcess, counters: Counters) {
  const blob = curriculumBlob(counters) ?? '';
  return decodeCurriculum(await getJsonBlob(loop.store, runId, blob), blob);
}

describe('a run with a curriculum (seed 42)', () => {
  it('passes over exactly the prompts that were solved the last time', async () => {
    let leftOut = 0;
    for (const { batch } of undisturbed.iterations.slice(1)) {
      const state = await stateOf(undisturbed, batch.before);
      const isSolved = (draw: number, row: number) => {
        const last = state.get(row);
        return last !== undefined && last.mean >= 0.5 && Math.floor(draw / 6) - last.epoch < 3;
      };
      for (const { draw, row } of batch.draws) expect(isSolved(draw, row)).toBe(false);
      const numbers = new Set(batch.draws.map(({ draw }) => draw));
      const passed = (batch.passedOver ?? []).flatMap(([start, end]) =>
        Array.from({ length: end - start }, (_, i) => start + i),
      );
      leftOut += passed.length;
      expect(numbers.size + passed.length).toBe(batch.after.cursor - batch.before.cursor);
    }
    expect(leftOut).toBeGreaterThan(0);
  });

  it('gives a fork what it remembers', async () => {
    const fork = await loop.forkedAfter(undisturbed, 4);
    const states = (run: RunInProcess) => essencesOf(run.iterations).map(({ state, draws }) => ({ state, draws }));
    expect(states(fork)).toEqual(states(undisturbed).slice(4));
  });
});
