/** The part of the contract about lanes: micro-batches that an engine computes side by side. */
import { expect, it } from 'vitest';
import { at } from '../../core/at.ts';
import { forwardOne, rowsOf } from '../../core/ports/one-lane.ts';
import type { AdamW, PackedBatch, PolicyEngine } from '../../core/ports/policy.ts';
import { batchOf } from '../../native/testing/decoders.ts';

/** Nothing is clipped, so the first moments are linear in the gradients. */
const adamw: AdamW = { lr: 0.01, beta1: 0.9, beta2: 0.99, eps: 1e-8, weightDecay: 0.1, maxGradNorm: 0 };
const lengths = [7, 3, 5, 4, 6];

/** `policy`: gives an engine with random weights and moments, the same for the same seed. */
export function lanesContract(vocab: number, policy: (seed: number) => Promise<PolicyEngine>): void {
  /** One micro-batch for each lane and one more, so in the last row all lanes but one have nothing. */
  const microBatches = ({ lanes }: PolicyEngine) =>
    Array.from({ length: lanes + 1 }, (_, i) => batchOf({ vocab }, [at(lengths, i % lengths.length), 4], 20 + i));

  it('gives what it gives one after the other, also with lanes that have nothing', async () => {
    const engine = await policy(14);
    const options = { temperature: 1, wants: ['logProbs', 'entropy'], keep: false } as const;
    for (const row of rowsOf(microBatches(engine), engine)) {
      const together = await engine.forward(row, options);
      expect(together).toHaveLength(row.length);
      for (const [lane, batch] of row.entries()) {
        const { outputs } = await forwardOne(engine, batch, options);
        for (const name of options.wants)
          requireClose(at(together, lane).outputs[name], outputs[name], `${name} of lane ${lane}`);
      }
    }
  });

  it('adds up the gradients of all lanes and calls', async () => {
    const [rows, whole, fewer] = [await policy(15), await policy(15), await policy(15)];
    const batches = microBatches(rows);
    for (const row of rowsOf(batches, rows)) await accumulate(rows, row);
    await accumulate(whole, [joined(batches)]);
    for (const batch of batches.slice(0, -1)) await accumulate(fewer, [batch]);
    const norms = [];
    for (const engine of [rows, whole, fewer]) norms.push((await engine.step(adamw)).gradNorm);
    expect(at(norms, 0) / at(norms, 1)).toBeCloseTo(1, 4);
    const [found, expected, without] = [await momentsOf(rows), await momentsOf(whole), await momentsOf(fewer)];
    requireClose(found, expected, 'the first moments');
    expect(largestDifference(found, without), 'the last micro-batch counts').toBeGreaterThan(100 * rounding);
  });

  it('frees the passes of all lanes of a call', async () => {
    const engine = await policy(16);
    const row = microBatches(engine).slice(0, engine.lanes);
    const passes = await engine.forward(row, { temperature: 1, wants: ['logProbs'], keep: true });
    await engine.discard(passes.map(({ handle }) => handle));
    for (const { handle } of passes)
      await expect(engine.backward([{ handle, gradients: {} }])).rejects.toMatchObject({ code: 'InvalidInput' });
  });

  it('refuses more micro-batches than it has lanes', async () => {
    const engine = await policy(16);
    const options = { temperature: 1, wants: ['logProbs'], keep: false } as const;
    await expect(engine.forward(microBatches(engine), options)).rejects.toMatchObject({ code: 'InvalidInput' });
  });
}

/** Adds the gradients of one call, which raise the log-probs of the targets. */
async function accumulate(engine: PolicyEngine, row: readonly PackedBatch[]): Promise<void> {
  const passes = await engine.forward(row, { temperature: 1, wants: ['logProbs'], keep: true });
  await engine.backward(
    passes.map(({ handle, outputs }) => ({
      handle,
      gradients: { logProbs: new Float32Array(outputs.logProbs.length).fill(-0.1) },
    })),
  );
}

/** The sequences of all micro-batches in one. */
function joined(batches: readonly PackedBatch[]): PackedBatch {
  const starts = batches.map((_, b) => batches.slice(0, b).reduce((sum, { tokens_N }) => sum + tokens_N.length, 0));
  const from = (pick: (batch: PackedBatch, start: number) => Iterable<number>) =>
    Int32Array.from(batches.flatMap((batch, b) => [...pick(batch, at(starts, b))]));
  return {
    tokens_N: from(({ tokens_N }) => tokens_N),
    cuSeqlens: Int32Array.of(0, ...from(({ cuSeqlens }, start) => cuSeqlens.subarray(1).map((end) => start + end))),
    positions_P: from(({ positions_P }, start) => positions_P.map((position) => start + position)),
    targets_P: from(({ targets_P = [] }) => targets_P),
  };
}

async function momentsOf(engine: PolicyEngine): Promise<Float32Array> {
  const values = new Float32Array(engine.elements);
  await engine.read('m', 0, values);
  return values;
}

/** Sums in another order differ in their last bits. */
const rounding = 1e-4;

function requireClose(found: Float32Array, expected: Float32Array, what: string): void {
  expect(found, what).toHaveLength(expected.length);
  expect(largestDifference(found, expected), `${what}: largest difference`).toBeLessThan(rounding);
}

/** The largest difference, as a share of the largest value. */
function largestDifference(found: Float32Array, expected: Float32Array): number {
  const largest = expected.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
  return found.reduce((most, value, i) => Math.max(most, Math.abs(value - at(expected, i)) / largest), 0);
}
