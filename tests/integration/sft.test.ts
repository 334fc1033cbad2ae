import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { getBlob } from '../../log/objects/blobs.ts';
import { readDataset } from '../../log/inputs/datasets.ts';
import { modelFolder } from '../../log/inputs/model-facts.ts';
import { decodeBatch } from '../../models/batch-tensors.ts';
import { BlockCache, openDataset } from '../../models/dataset-rows.ts';
import { openTokenizer } from '../../models/tokenizer.ts';
import { LoopUnderTest } from '../loop-under-test.ts';
import type { Iteration, StartedRun } from '../loop-under-test.ts';

const iterations = 30;
const maxTokens = 32;

const loop = LoopUnderTest.onLentStack();
let run: StartedRun;
let made: Iteration[];
beforeAll(async () => {
  await loop.up();
  run = await loop.start({
    kind: 'sft',
    data: { train_batch_size: 12 },
    actor: { ppo_max_token_len_per_gpu: maxTokens, optim: { lr: 0.01 } },
    trainer: { total_training_steps: iterations },
  });
  await loop.reaches(run, 'completed');
  made = await loop.iterations(run);
});
afterAll(() => loop.remove());

describe('a supervised run (seed 42)', () => {
  it('learns: its loss falls', () => {
    const losses = made.map(({ update }) => Number(update.metrics['train/loss']));
    expect(losses).toHaveLength(iterations);
    expect(losses.every(Number.isFinite)).toBe(true);
    expect(losses.at(-1)).toBeLessThan(0.6 * (losses[0] ?? 0));
  });

  it('learns only responses: every scored token belongs to a response, none to a prompt', async () => {
    const { inputs } = await run.log.revision();
    const dataset = openDataset(await readDataset(loop.store, inputs.train), new BlockCache(1 << 20));
    const tokenizer = await openTokenizer(await modelFolder(loop.store, inputs.model, loop.home, 'text'));
    const { batch } = made[0] as Iteration;
    const drawn = batch.draws.map(({ row }) => row);
    const sequences = await dataset.sequences(drawn, tokenizer);
    const tensors = decodeBatch(await getBlob(loop.store, run.runId, batch.tensors), 'batch');
    sequences.forEach(({ prompt, response = new Int32Array() }, b) => {
      const sample = tensors.tokens_N.subarray(tensors.offsets_S1[b], tensors.offsets_S1[b + 1]);
      const scored = tensors.scored_T.subarray(tensors.scoredOffsets_S1[b], tensors.scoredOffsets_S1[b + 1]);
      expect([...sample]).toEqual([...prompt, ...response]);
      expect([...scored].map((n) => n - (tensors.offsets_S1[b] ?? 0))).toEqual(
        [...response.keys()].map((t) => prompt.length + t),
      );
      // The end of text is learnt as well.
      expect(response.at(-1)).toBe(1);
    });
  });

  it('packs: no micro-batch is over the token limit, and every row is in exactly one', async () => {
    for (const { batch } of made.slice(0, 3)) {
      const tensors = decodeBatch(await getBlob(loop.store, run.runId, batch.tensors), 'batch');
      const lengthOf = (b: number) => (tensors.offsets_S1[b + 1] ?? 0) - (tensors.offsets_S1[b] ?? 0);
      const micros = Array.from({ length: tensors.microOffsets_M1.length - 1 }, (_, m) => [
        ...tensors.microSamples.subarray(tensors.microOffsets_M1[m], tensors.microOffsets_M1[m + 1]),
      ]);
      expect(micros.length).toBeGreaterThan(1);
      expect(
        Math.max(...micros.map((samples) => samples.reduce((sum, b) => sum + lengthOf(b), 0))),
      ).toBeLessThanOrEqual(maxTokens);
      expect(micros.flat().sort((a, b) => a - b)).toEqual(Array.from({ length: 12 }, (_, b) => b));
    }
  });

  it('makes its batches from rows alone, without sampling and scoring', () => {
    for (const { batch } of made) expect(batch.results.map((jobId) => jobId.split('-')[0])).toEqual(['advantage']);
  });
});
