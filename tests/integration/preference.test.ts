/** Runs that learn pairs of given responses: `kind: dpo` and `kind: rm`. */
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { reproducibleMetrics } from '../../core/metrics.ts';
import type { Tree } from '../../core/recipe/index.ts';
import type { ArmedFault } from '../../infra/faults/index.ts';
import { faultsVariable } from '../../infra/faults/index.ts';
import { getBlob } from '../../infra/store/blobs.ts';
import { decodeBatch } from '../../models/batch-tensors.ts';
import { Injector } from '../inject.ts';
import { LoopUnderTest, separatePools } from '../loop-under-test.ts';
import type { Iteration, StartedRun } from '../loop-under-test.ts';

const loop = new LoopUnderTest();
const faults = join(loop.home, 'faults');
let injector: Injector;
beforeAll(async () => {
  injector = new Injector(loop.home, faults);
  process.env[faultsVariable] = faults;
  await loop.up();
});
afterEach(() => injector.disarmAll());
afterAll(async () => {
  delete process.env[faultsVariable];
  injector.close();
  await loop.remove(); // also verifies every ledger, with all tensors
});

const iterations = 6;
const recipeOf = (kind: 'dpo' | 'rm'): Tree => ({
  kind,
  data: { val_files: loop.validationPairs, train_batch_size: 6, max_length: 12 },
  actor: { ppo_max_token_len_per_gpu: 40, optim: { lr: 0.01, weight_decay: 0 } },
  trainer: { total_training_steps: iterations, save_freq: 2, test_freq: 3, val_before_train: true },
});

/** The values on which two equal runs must agree. */
const essence = ({ batch, update }: Iteration) => ({
  tensors: batch.tensors,
  trained: batch.components,
  state: update.stateDigest,
  components: update.components,
  counters: update.after,
  metrics: reproducibleMetrics({ ...batch.metrics, ...update.metrics } as Record<string, number>),
});
const essences = async (run: StartedRun) => (await loop.iterations(run)).map(essence);
const accuracies = async ({ log }: StartedRun) =>
  (await log.evaluations()).map(({ iteration, accuracy, questions }) => ({ iteration, accuracy, questions }));

describe.each(['dpo', 'rm'] as const)('a run of kind %s (seed 42)', (kind) => {
  let undisturbed: StartedRun;
  let made: Iteration[];
  beforeAll(async () => {
    await loop.up();
    undisturbed = await loop.completed(recipeOf(kind));
    made = await loop.iterations(undisturbed);
  });

  it('learns: the loss falls from log 2, and the chosen response is preferred more', () => {
    const of = (name: string) => made.map(({ update }) => Number(update.metrics[name]));
    expect(made).toHaveLength(iterations);
    expect(of('train/loss')[0]).toBeCloseTo(Math.LN2, 5);
    expect(of('train/loss').at(-1)).toBeLessThan(0.68);
    expect(of('rewards/margins').at(-1)).toBeGreaterThan(0.02);
    for (const { update } of made)
      expect(Number(update.metrics['rewards/margins'])).toBeCloseTo(
        Number(update.metrics['rewards/chosen']) - Number(update.metrics['rewards/rejected']),
        6,
      );
  });

  it('keeps the responses of a pair side by side in one micro-batch', async () => {
    for (const { batch } of made) {
      const tensors = decodeBatch(await getBlob(loop.store, undisturbed.runId, batch.tensors), 'batch');
      const micros = Array.from({ length: tensors.microOffsets_M1.length - 1 }, (_, m) => [
        ...tensors.microSamples.subarray(tensors.microOffsets_M1[m], tensors.microOffsets_M1[m + 1]),
      ]);
      expect(micros.length).toBeGreaterThan(1);
      for (const micro of micros)
        for (let i = 0; i < micro.length; i += 2)
          expect(micro.slice(i, i + 2)).toEqual([micro[i], (micro[i] ?? 0) + 1]);
      expect((tensors.refLogProbs_T !== undefined) === (kind === 'dpo')).toBe(true);
      expect(batch.draws.map(({ samples }) => samples)).toEqual(batch.draws.map((_, g) => [2 * g, 2 * g + 1]));
    }
  });

  it('validates on held-out pairs; at the start it prefers none', async () => {
    const found = await accuracies(undisturbed);
    expect(found.map(({ iteration }) => iteration)).toEqual([0, 3, 6]);
    expect(found[0]).toMatchObject({ accuracy: 0, questions: 10 });
    expect(found[2]?.accuracy).toBeGreaterThan(0.3);
  });

  it.each<readonly [string, Pick<ArmedFault, 'point' | 'facts'>]>([
    ['between the forward passes of iteration 4', { point: 'write.step', facts: { iteration: 4, step: 0 } }],
    ['in the middle of its checkpoint', { point: 'checkpoint.shard', facts: { iteration: 4 } }],
  ])('ends in the same bits when its trainer is killed %s', async (_, at) => {
    const id = `${kind} ${at.point}`.replaceAll(' ', '-');
    injector.arm({ id, ...at, action: 'stand' });
    const run = await loop.start(recipeOf(kind));
    const { identity } = await injector.stands(id, AbortSignal.timeout(60_000));
    injector.disarm(id);
    if (identity === undefined) throw new Error('the trainer is gone');
    await injector.kill([{ name: 'the trainer', identity }]);
    await loop.reaches(run, 'completed');
    expect(await essences(run)).toEqual(await essences(undisturbed));
    expect(await accuracies(run)).toEqual(await accuracies(undisturbed));
  });

  it('ends in the same bits where only trainers run', async () => {
    await loop.up(separatePools.slice(0, 1));
    const run = await loop.completed({
      ...recipeOf(kind),
      fleet: { pools: { train: { roles: ['trainer'], workers: 1 } } },
    });
    expect(await essences(run)).toEqual(await essences(undisturbed));
    expect(await accuracies(run)).toEqual(await accuracies(undisturbed));
  });
});
