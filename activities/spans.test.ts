import { describe, expect, it } from 'vitest';
import { joinSpans, seconds, spanOf } from './spans.ts';

const rollout = (endedAt: string, took: number) =>
  spanOf('rollout', { endedAt, timings: { 'timing_s/rollout': took } });

describe('the wall time of a stage', () => {
  it('goes from the start of its first job to the end of its last', () => {
    const spans = [rollout('2026-01-01T00:00:10Z', 4), rollout('2026-01-01T00:00:11Z', 4)];
    expect(seconds('timing_s/gen', joinSpans(spans))).toEqual({ 'timing_s/gen': 5 });
  });

  it('is unknown when a job has no end time or no duration', () => {
    expect(joinSpans([rollout('2026-01-01T00:00:10Z', 4), spanOf('rollout', { timings: {} })])).toBeUndefined();
    expect(spanOf('rollout', { endedAt: '2026-01-01T00:00:10Z', timings: {} })).toBeUndefined();
    expect(joinSpans([])).toBeUndefined();
    expect(seconds('timing_s/gen', undefined)).toEqual({});
  });
});
