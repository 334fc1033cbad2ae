import { describe, expect, it } from 'vitest';
import type { BatchRecord } from '../../core/records/schema.ts';
import type { Span } from '../spans.ts';
import { batchTimings, updateTimings } from './stage-timings.ts';

const at = (second: number) => Date.UTC(2026, 0, 1, 0, 0, second);
const span = (from: number, until: number) => ({ from: at(from), until: at(until) });

const ended = (when: Span, timings = {}) => ({ jobId: 'job', timings, span: when });

describe('the timings of an iteration', () => {
  const timings = batchTimings(
    [
      { rollout: ended(span(0, 4), { 'timing_s/rollout': 4 }), reward: ended(span(4, 5)) },
      { rollout: ended(span(1, 5), { 'timing_s/rollout': 4 }), reward: ended(span(5, 7)) },
    ],
    { timings: { 'timing_s/advantage': 1, 'timing_s/adv': 0.75 }, endedAt: '2026-01-01T00:00:08Z' },
    at(9),
  );

  it('have wall times of jobs that ran side by side', () => {
    expect(timings).toEqual({
      'timing_s/rollout': 8,
      'timing_s/gen': 5,
      'timing_s/reward': 3,
      'timing_s/advantage': 1,
      'timing_s/adv': 0.75,
      'timing_s/batch': 9,
    });
  });

  const batch = (part: Partial<BatchRecord>) =>
    ({
      timings,
      metrics: { 'training/tokens': 600, 'training/response_tokens': 300 },
      writer: { process: 'p', at: '2026-01-01T00:00:09Z' },
      ...part,
    }) as BatchRecord;

  it('give the step and its tokens per second at the commit', () => {
    expect(updateTimings(batch({}), { 'timing_s/update': 3, 'timing_s/update_actor': 2.4 }, at(12))).toEqual({
      'timing_s/update': 3,
      'timing_s/update_actor': 2.4,
      'perf/state_loads': 0,
      'perf/replayed_iterations': 0,
      'timing_s/step': 12,
      'timing_per_token_ms/gen': (1000 * 5) / 300,
      'timing_per_token_ms/adv': 1.25,
      'timing_per_token_ms/update_actor': 4,
      'perf/total_num_tokens': 600,
      'perf/time_per_step': 12,
      'perf/throughput': 50,
      'perf/response_throughput': 25,
    });
  });

  it('are missing for a batch of an older petrel or another term, whose time is unknown', () => {
    const none = { 'perf/state_loads': 0, 'perf/replayed_iterations': 0 };
    expect(updateTimings(batch({ timings: { 'timing_s/rollout': 8 } }), {}, at(12))).toEqual(none);
    expect(updateTimings(batch({ adopted: { term: 1, record: 'a' } }), {}, at(12))).toEqual(none);
  });

  it('count the loads and replays of all jobs of the iteration', () => {
    const made = { ...timings, 'perf/state_loads': 1, 'perf/replayed_iterations': 2 };
    const counted = { 'perf/state_loads': 1, 'perf/replayed_iterations': 3 };
    expect(updateTimings(batch({ timings: made }), counted, at(12))).toMatchObject({
      'perf/state_loads': 2,
      'perf/replayed_iterations': 5,
    });
  });
});

describe('the timings of an iteration of sft', () => {
  it('start with the job that makes the batch', () => {
    const made = { timings: { 'timing_s/advantage': 2 }, endedAt: '2026-01-01T00:00:05Z' };
    expect(batchTimings([], made, at(6))).toEqual({ 'timing_s/advantage': 2, 'timing_s/batch': 3 });
  });
});
