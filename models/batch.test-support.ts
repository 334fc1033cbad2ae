/** Batches of every shape, with any of the tensors that a batch may have, and plans of every kind. */
import fc from 'fast-check';
import { at } from '../core/at.ts';
import type { BatchTensors } from './batch-tensors.ts';
import { offsetsOf } from '../core/offsets.ts';

export interface ArbitraryBatch {
  readonly batch: BatchTensors;
  readonly epochs: number;
}

/** Tensors that a batch may lack. */
const optional = [
  'old',
  'ref',
  'rollout',
  'teacher',
  'topk',
  'weights',
  'values',
  'scores',
  'prime',
  'logZ',
  'columns',
];

/** Plans: each epoch has all samples, in another order where it is shuffled; or samples that are drawn again. */
export const arbitraryBatch: fc.Arbitrary<ArbitraryBatch> = fc
  .record({
    lengths: fc.array(fc.tuple(fc.integer({ min: 1, max: 5 }), fc.nat({ max: 6 })), { minLength: 1, maxLength: 12 }),
    epochs: fc.integer({ min: 1, max: 3 }),
    stepSamples: fc.integer({ min: 1, max: 5 }),
    microSamples: fc.integer({ min: 1, max: 3 }),
    order: fc.constantFrom('same' as const, 'shuffled' as const, 'drawn' as const),
    has: fc.oneof(fc.constant(optional), fc.subarray(optional)),
    seed: fc.nat(),
  })
  .map(({ lengths, epochs, stepSamples, microSamples, order, has, seed }) => ({
    epochs,
    batch: {
      ...tensorsOf(lengths, new Set(has), seed),
      ...planOf(lengths.length, epochs, stepSamples, microSamples, order, seed),
    },
  }));

/** A number of a sequence that looks random. */
const numberAt = (seed: number, i: number): number => Math.imul(seed + 1, 0x9e3779b1) ^ Math.imul(i + 1, 0x85ebca6b);

function tensorsOf(lengths: readonly (readonly [number, number])[], has: ReadonlySet<string>, seed: number) {
  const offsets_S1 = offsetsOf(lengths.map(([prompt, response]) => prompt + response));
  const scoredOffsets_S1 = offsetsOf(lengths.map(([, response]) => response));
  const tokens = at(scoredOffsets_S1, -1);
  let purpose = 0;
  const floats = (length: number) => {
    const from = 1000 * purpose++;
    return Float32Array.from({ length }, (_, i) => (numberAt(seed, from + i) % 1000) / 500);
  };
  const whole = (length: number, below: number) =>
    floats(length).map((value) => Math.floor(Math.abs(value) * below) % below);
  const perSample = () => floats(lengths.length);
  const perToken = () => floats(tokens);
  const scored = lengths.flatMap(([prompt, response], b) =>
    Array.from({ length: response }, (_, t) => at(offsets_S1, b) + prompt + t),
  );
  return {
    tokens_N: Int32Array.from(whole(at(offsets_S1, -1), 50)),
    offsets_S1,
    scored_T: Int32Array.from(scored),
    scoredOffsets_S1,
    mask_T: Uint8Array.from(whole(tokens, 2)),
    advantages_T: perToken(),
    returns_T: perToken(),
    // A sample without a token has no score.
    rewards_S: perSample().map((score, b) => ((lengths[b]?.[1] ?? 0) === 0 ? 0 : score)),
    ...(has.has('old') && { oldLogProbs_T: perToken() }),
    ...(has.has('ref') && { refLogProbs_T: perToken() }),
    ...(has.has('rollout') && { rolloutLogProbs_T: perToken() }),
    ...(has.has('teacher') && { teacherLogProbs_T: perToken() }),
    ...(has.has('topk') &&
      tokens > 0 && {
        teacherTopTokens_TK: Int32Array.from(whole(3 * tokens, 50)),
        teacherTopLogProbs_TK: floats(3 * tokens),
      }),
    ...(has.has('weights') && { rolloutIsWeights_T: perToken() }),
    ...(has.has('values') && { values_T: perToken() }),
    ...(has.has('scores') && { modelScores_S: perSample() }),
    ...(has.has('prime') && {
      groups_S: Int32Array.from(lengths, (_, b) => Math.min(b >> 1, Math.max(0, (lengths.length >> 1) - 1))),
      accuracies_S: perSample(),
      groupQ_S: perSample(),
    }),
    ...(has.has('logZ') && { logZ_S: perSample() }),
    ...(has.has('columns') && { tokenColumns: { experts: { data: Int32Array.from(whole(2 * tokens, 8)), width: 2 } } }),
  };
}

function planOf(
  samples: number,
  epochs: number,
  stepSamples: number,
  microSamples: number,
  order: 'same' | 'shuffled' | 'drawn',
  seed: number,
): Pick<BatchTensors, 'stepOffsets_U1' | 'microOffsets_M1' | 'microSamples'> {
  const all = Array.from({ length: samples }, (_, b) => b);
  const steps: number[][][] = [];
  for (let epoch = 0; epoch < epochs; epoch++) {
    const key = (b: number) => numberAt(seed + epoch, b) >>> 0;
    const shuffled = order === 'shuffled' ? [...all].sort((a, b) => key(a) - key(b)) : all;
    const members = order === 'drawn' ? all.map((b) => key(b) % samples) : shuffled;
    for (let from = 0; from < samples; from += stepSamples) {
      const step = members.slice(from, from + stepSamples);
      steps.push(
        all
          .slice(0, Math.ceil(step.length / microSamples))
          .map((m) => step.slice(m * microSamples, (m + 1) * microSamples)),
      );
    }
  }
  return {
    stepOffsets_U1: offsetsOf(steps.map(({ length }) => length)),
    microOffsets_M1: offsetsOf(steps.flat().map(({ length }) => length)),
    microSamples: Int32Array.from(steps.flat(2)),
  };
}
