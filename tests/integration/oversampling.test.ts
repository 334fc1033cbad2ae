/** Oversampling: of more groups than a batch has, those that are neither too easy nor too hard are trained on first. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Tree } from '../../core/recipe/index.ts';
import { keys } from '../../core/records/keys.ts';
import { resultRecord } from '../../core/records/schema.ts';
import { parseScoreTable } from '../../core/wire/score-table.ts';
import { getBlob, getJsonBlob } from '../../log/objects/blobs.ts';
import { readRecord } from '../../log/objects/records.ts';
import { decodeTrajectories } from '../../models/trajectories.ts';
import { InProcessLoop } from '../in-process-loop.ts';
import type { RunInProcess } from '../in-process-loop.ts';

const recipe: Tree = {
  data: { oversample_factor: 2, filter_accuracy: true, filter_truncate: true, max_response_length: 6 },
  trainer: { total_training_steps: 4, save_freq: 2 },
};

const loop = new InProcessLoop(({ solutionStr }) => ({ score: solutionStr.length, acc: solutionStr.includes('7') }));
let undisturbed: RunInProcess;
beforeAll(async () => {
  await loop.up();
  undisturbed = await loop.completed(recipe);
});
afterAll(() => loop.remove());

/** Does the group of each draw pass, from the samples and scores that the batch names? */
async function passing(
  { log: { runId } }: RunInProcess,
  { batch }: RunInProcess['iterations'][number],
): Promise<Map<number, boolean>> {
  const passes = new Map<number, boolean>();
  const results = await Promise.all(
    batch.results.map((id) => readRecord(loop.store, keys.result(runId, id), resultRecord)),
  );
  const digests = (field: string) =>
    results.flatMap((found) => (found?.record.output[field] as string | undefined) ?? []);
  const tables = await Promise.all(
    digests('scores').map(async (digest) => parseScoreTable(await getJsonBlob(loop.store, runId, digest), digest)),
  );
  for (const digest of digests('trajectories')) {
    const trajectories = decodeTrajectories(await getBlob(loop.store, runId, digest), digest);
    const scores = tables.find((table) => table.trajectories === digest)!;
    trajectories.draw_S.forEach((draw, s) => {
      if (s % 4 !== 0) return;
      const members = [s, s + 1, s + 2, s + 3];
      const mean = members.reduce((sum, b) => sum + Number(scores.columns['acc']?.[b]), 0) / 4;
      const lengths = members.map((b) => trajectories.responseOffsets_S1[b + 1]! - trajectories.responseOffsets_S1[b]!);
      passes.set(draw, mean >= 0.2 && mean <= 0.8 && Math.max(...lengths) < 5);
    });
  }
  return passes;
}

describe('a run with oversampling (seed 42)', () => {
  it('trains on groups that pass first, then on others, and each draw has an outcome', async () => {
    const fates = new Set<string>();
    let others = 0;
    for (const made of undisturbed.iterations) {
      const { batch } = made;
      const passes = await passing(undisturbed, made);
      expect(batch.draws.map(({ draw }) => draw)).toEqual(Array.from({ length: 8 }, (_, i) => batch.before.cursor + i));
      expect(batch.after.cursor).toBe(batch.before.cursor + 8);
      const order = [
        ...batch.draws.filter(({ draw }) => passes.get(draw)),
        ...batch.draws.filter(({ draw }) => !passes.get(draw)),
      ];
      const wanted = new Set(order.slice(0, 4).map(({ draw }) => draw));
      for (const { draw, fate, reason } of batch.draws) {
        fates.add(fate);
        if (wanted.has(draw)) expect(fate).toBe('trained');
        else if (passes.get(draw)) expect([fate, reason]).toEqual(['surplus', 'the batch was full']);
        else expect([fate, reason]).toEqual(['filtered', expect.stringMatching(/mean accuracy|count as truncated/)]);
        if (fate === 'trained' && !passes.get(draw)) others++;
      }
      expect(batch.metrics).toMatchObject({
        'training/samples': 16,
        'train/num_gen_batches': 1,
        'training/filtered_groups': batch.draws.filter(({ fate }) => fate === 'filtered').length,
      });
    }
    expect(fates).toContain('filtered');
    expect(others).toBeGreaterThan(0);
  });

  it('leaves groups out that pass, when the batch is full', async () => {
    const data = { oversample_factor: 4, filter_accuracy: true, accuracy_lower_bound: 0, accuracy_upper_bound: 0.9 };
    const [made] = (await loop.completed({ ...recipe, data, trainer: { total_training_steps: 1 } })).iterations;
    const outcomes = made!.batch.draws.map(({ fate, reason, samples }) => ({ fate, reason, samples }));
    expect(outcomes).toHaveLength(16);
    expect(outcomes.filter(({ fate }) => fate === 'trained')).toHaveLength(4);
    expect(outcomes).toContainEqual({
      fate: 'surplus',
      reason: 'the batch was full',
      samples: Array.from({ length: 4 }, () => 'the batch was full'),
    });
  });
});
