import fc from 'fast-check';
import { expect, it } from 'vitest';
import { evaluation } from './evaluation.ts';

const ref = { runId: 'judged-20260101-000000-0001', store: 'file:///nowhere' };
const head = { term: 1, position: 3, weightsDigest: 'a'.repeat(64) };

/** One table: a score and an `acc` per sample; a null score is a failed sample. */
function validation(samples: readonly { readonly score: number | null; readonly acc: number | null }[]) {
  const table = {
    trajectories: 'b'.repeat(64),
    scores: samples.map(({ score }) => score),
    reasons: samples.map(({ score }) => (score === null ? 'timeout' : null)),
    columns: { acc: samples.map(({ acc }) => acc) },
  };
  return evaluation(ref, head, [], [table], 1);
}

it('is an accuracy when the scorer returned acc for every sample that did not fail', () => {
  const { accuracy, failed, metrics } = validation([
    { score: 0.5, acc: 1 },
    { score: null, acc: null },
    { score: 2, acc: 0 },
    { score: 0, acc: 1 },
  ]);
  expect({ accuracy, failed }).toEqual({ accuracy: 0.5, failed: 1 });
  expect(metrics).toMatchObject({ 'val-core/acc/mean@1': 0.5, 'val-aux/score/mean@1': 0.625 });
});

it('is a score, never a mixture, when only some samples have acc', () => {
  const number = fc.double({ min: -8, max: 8, noNaN: true });
  const sample = fc.record({ score: number, acc: fc.option(fc.constantFrom(0, 1)) });
  fc.assert(
    fc.property(fc.array(sample, { minLength: 1 }), number, fc.nat(), (some, score, at) => {
      const samples = [...some.slice(0, at % some.length), { score, acc: null }, ...some.slice(at % some.length)];
      const { accuracy, metrics } = validation(samples);
      const mean = samples.reduce((sum, one) => sum + one.score, 0) / samples.length;
      expect(accuracy).toBeCloseTo(mean, 12);
      expect(metrics['val-core/score/mean@1']).toBe(accuracy);
      expect(Object.keys(metrics).filter((name) => name.startsWith('val-core/'))).toHaveLength(1);
    }),
  );
});
