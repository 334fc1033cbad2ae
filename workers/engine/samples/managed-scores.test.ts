import { expect, it } from 'vitest';
import { managedScores } from './managed-scores.ts';
import type { Sample } from './samples.ts';

const sampleOf = (score: number, tokens: number, columns: Record<string, number> = {}): Sample => ({
  draw: 0,
  row: 0,
  prompt: Int32Array.of(1),
  response: new Int32Array(tokens),
  rolloutLogProbs: new Float32Array(tokens),
  mask: new Uint8Array(tokens).fill(1),
  score,
  stopReason: 1,
  columns,
});

it('scores stay as they are without a reward manager', () => {
  const managed = managedScores({}, [sampleOf(1, 3, { acc: 1 }), sampleOf(0.5, 2)]);
  expect(managed).toEqual({ scores_S: Float32Array.of(1, 0.5), metrics: {} });
});

it('scores of long responses are lower by a penalty, which is reported', () => {
  const overlong = { limit: 8, buffer: 4, factor: 2 };
  const managed = managedScores({ overlong }, [sampleOf(1, 4), sampleOf(1, 5), sampleOf(0, 8)]);
  expect([...managed.scores_S]).toEqual([1, 0.5, -2]);
  expect(managed.metrics['reward_extra/overlong/mean']).toBeCloseTo(2 / 3, 12);
  expect(managed.metrics['reward_extra/overlong_reward/mean']).toBeCloseTo(-2.5 / 3, 12);
  expect(managed.metrics['reward_extra/score/mean']).toBeCloseTo(2 / 3, 7);
});

it('scores by name come from the columns, with a metric each', () => {
  const components = { keys: ['format', 'score'] };
  const managed = managedScores({ components }, [sampleOf(1, 4, { format: 0 }), sampleOf(0.5, 5, { format: 1 })]);
  expect(managed.components).toEqual({ format: Float64Array.of(0, 1), score: Float64Array.of(1, 0.5) });
  expect(managed.metrics).toMatchObject({ 'gdpo/format/mean': 0.5, 'gdpo/score/max': 1 });
  expect(() => managedScores({ components }, [sampleOf(1, 4)])).toThrow(/no component format/);
});

it('of no samples there are none, whatever the manager', () => {
  const none = { scores_S: new Float32Array(), metrics: {} };
  expect(managedScores({ components: { keys: ['format'] } }, [])).toEqual(none);
  expect(managedScores({ overlong: { limit: 8, buffer: 4, factor: 2 } }, [])).toEqual(none);
});
