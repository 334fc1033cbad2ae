import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { measureOf } from '../../core/validation-measure.ts';
import type { ScoreTable } from '../../core/wire/score-table.ts';
import { evaluation } from './evaluation.ts';

const ref = { runId: 'judged-20260101-000000-0001', store: 'file:///nowhere' };
const head = { term: 1, position: 3, weightsDigest: 'a'.repeat(64) };

interface Sample {
  readonly score: number | null;
  readonly acc: number | null;
  readonly pred?: string;
  readonly source?: string;
}

/** A null score is a failed sample. */
function tableOf(samples: readonly Sample[]): ScoreTable {
  const names = [...new Set(samples.map(({ source = 'math' }) => source))];
  return {
    trajectories: 'b'.repeat(64),
    scores: samples.map(({ score }) => score),
    reasons: samples.map(({ score }) => (score === null ? 'timeout' : null)),
    columns: { acc: samples.map(({ acc }) => acc) },
    texts: { pred: samples.map(({ pred = null }) => pred) },
    sources: { names, samples: samples.map(({ source = 'math' }) => names.indexOf(source)) },
  };
}

const validation = (samples: readonly Sample[], n = 1) => evaluation(ref, head, [], [tableOf(samples)], n);

describe('a validation', () => {
  it('is an accuracy when the scorer returned acc for every sample that did not fail', async () => {
    const { accuracy, failed, metrics } = await validation([
      { score: 0.5, acc: 1 },
      { score: null, acc: null },
      { score: 2, acc: 0 },
      { score: 0, acc: 1 },
    ]);
    expect({ accuracy, failed }).toEqual({ accuracy: 0.5, failed: 1 });
    expect(metrics).toEqual({
      'val-core/math/acc/mean@1': 0.5,
      'val-aux/math/reward/mean@1': 0.625,
      'val/response_tokens': 0,
    });
    expect(measureOf(metrics)).toBe('accuracy');
  });

  it('takes the responses to one prompt together, however many each has', async () => {
    const samples = [1, 0, 1, 0].map((acc) => ({ score: acc, acc }));
    const table = { ...tableOf(samples), drawOffsets: [0, 3, 4] };
    const { metrics } = await evaluation(ref, head, [], [table], 2);
    // The means of three responses and of one.
    expect(metrics['val-core/math/acc/mean@3']).toBeCloseTo(2 / 3, 12);
    expect(metrics['val-aux/math/acc/mean@1']).toBe(0);
  });

  it('is a score, never a mixture, when only some samples have acc', async () => {
    const number = fc.double({ min: -8, max: 8, noNaN: true });
    const sample = fc.record({ score: number, acc: fc.option(fc.constantFrom(0, 1)) });
    await fc.assert(
      fc.asyncProperty(fc.array(sample, { minLength: 1 }), number, fc.nat(), async (some, score, at) => {
        const samples = [...some.slice(0, at % some.length), { score, acc: null }, ...some.slice(at % some.length)];
        const { accuracy, metrics } = await validation(samples);
        const mean = samples.reduce((sum, one) => sum + one.score, 0) / samples.length;
        expect(accuracy).toBeCloseTo(mean, 12);
        expect(metrics['val-core/math/reward/mean@1']).toBe(accuracy);
        expect(Object.keys(metrics).filter((name) => name.startsWith('val-core/'))).toHaveLength(1);
        expect(measureOf(metrics)).toBe('score');
      }),
    );
  });

  it('has the best and the majority of several responses, by data source', async () => {
    const { accuracy, questions, metrics } = await validation(
      [
        { score: 1, acc: 1, pred: '7', source: 'sums' },
        { score: 0, acc: 0, pred: '8', source: 'sums' },
        { score: 1, acc: 1, pred: '7', source: 'openai/gsm8k' },
        { score: null, acc: null, source: 'openai/gsm8k' },
      ],
      2,
    );
    expect({ accuracy, questions }).toEqual({ accuracy: 0.5, questions: 4 });
    expect(metrics).toMatchObject({
      'val-core/sums/acc/mean@2': 0.5,
      'val-core/sums/acc/best@2/mean': 0.75,
      'val-core/openai/gsm8k/acc/mean@2': 0.5,
      'val-core/openai/gsm8k/acc/maj@2/mean': 0.5,
      'val-aux/openai/gsm8k/reward/worst@2/mean': 0.25,
    });
  });

  it('is an accuracy also where all samples of a data source failed', async () => {
    const { accuracy, metrics } = await validation([
      { score: 1, acc: 1, source: 'a' },
      { score: null, acc: null, source: 'b' },
    ]);
    expect(accuracy).toBe(0.5);
    expect(metrics).toMatchObject({ 'val-core/a/acc/mean@1': 1, 'val-core/b/acc/mean@1': 0 });
    expect(measureOf(metrics)).toBe('accuracy');
  });

  it('is a score when one data source has no acc, which stays the core number of the other', async () => {
    const { accuracy, metrics } = await validation([
      { score: 0.5, acc: 1, source: 'a' },
      { score: 0.25, acc: null, source: 'b' },
    ]);
    expect(accuracy).toBe(0.375);
    expect(metrics).toMatchObject({ 'val-core/a/acc/mean@1': 1, 'val-core/b/reward/mean@1': 0.25 });
    expect(measureOf(metrics)).toBe('score');
  });

  it('reads tables of older versions of petrel, which have neither texts nor data sources', async () => {
    const { texts: _texts, sources: _sources, ...older } = tableOf([{ score: 1, acc: 1 }]);
    const { metrics } = await evaluation(ref, head, [], [older], 1);
    expect(metrics).toMatchObject({ 'val-core/unknown/acc/mean@1': 1 });
  });

  it('refuses to be empty', async () => {
    await expect(validation([])).rejects.toThrow('the validation has no questions');
  });
});

describe('the measure of a validation', () => {
  it.each([
    ['val/accuracy', 'accuracy'],
    ['val-core/acc/mean@1', 'accuracy'],
    ['val-core/score/mean@4', 'score'],
    ['val-core/score/acc/mean@4', 'accuracy'],
    ['val-core/reward/acc/mean@4', 'accuracy'],
    ['val-core/acc/reward/mean@4', 'score'],
  ])('of %s is %s', (name, measure) => {
    expect(measureOf({ [name]: 1 })).toBe(measure);
  });
});
