import { describe, expect, it } from 'vitest';
import { throughputMetrics, timingPerToken } from './timing-metrics.ts';

describe('times per token', () => {
  it('divide generation by response tokens, other stages by all tokens, and leave out the rest', () => {
    expect(timingPerToken({ gen: 2, update_actor: 3, testing: 4, ref: undefined }, { response: 10, all: 30 })).toEqual({
      'timing_per_token_ms/gen': 200,
      'timing_per_token_ms/update_actor': 100,
    });
  });

  it('are 0 without tokens', () => {
    expect(timingPerToken({ gen: 2 }, { response: 0, all: 3 })).toEqual({ 'timing_per_token_ms/gen': 0 });
  });
});

describe('the throughput', () => {
  it('is that of one device', () => {
    expect(throughputMetrics({ tokens: 600, seconds: 3, devices: 4 })).toEqual({
      'perf/total_num_tokens': 600,
      'perf/time_per_step': 3,
      'perf/throughput': 50,
    });
  });
});
