import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { DecodingRate } from './decoding-rate.ts';

/** A worker that has run these jobs, each ended before the next call. */
function rateOf(
  jobs: readonly { readonly from: number; readonly to: number; readonly tokens: number }[],
): DecodingRate {
  const rate = new DecodingRate();
  const ends = jobs.map((job) => ({ job, end: rate.begin(job.from) }));
  for (const { job, end } of ends.sort((a, b) => a.job.to - b.job.to)) end(job);
  return rate;
}

describe('the decoding rate of a worker', () => {
  it('is unknown before a job has ended', () => {
    const rate = new DecodingRate();
    expect(rate.tokensPerSecond).toBeUndefined();
    const end = rate.begin(0);
    expect(rate.tokensPerSecond).toBeUndefined();
    end(); // it failed
    expect(rate.tokensPerSecond).toBeUndefined();
  });

  it('counts seconds of decoding only, not those between jobs', () => {
    const jobs = [
      { from: 0, to: 10, tokens: 1_000 },
      { from: 90, to: 100, tokens: 3_000 },
    ];
    expect(rateOf(jobs).tokensPerSecond).toBe(200);
  });

  it('adds the tokens of jobs that decode at the same time', () => {
    const beside = Array.from({ length: 8 }, () => ({ from: 0, to: 10, tokens: 1_000 }));
    expect(rateOf(beside).tokensPerSecond).toBe(800);
  });

  it('does not fall while some of several jobs have ended', () => {
    const rate = rateOf(Array.from({ length: 8 }, () => ({ from: 0, to: 10, tokens: 1_000 })));
    const [first, ...others] = Array.from({ length: 8 }, () => rate.begin(20));
    first?.({ from: 20, to: 29, tokens: 900 });
    expect(rate.tokensPerSecond).toBe(800);
    for (const end of others) end({ from: 20, to: 30, tokens: 2_000 });
    expect(rate.tokensPerSecond).toBeGreaterThan(1_400);
  });

  it('forgets what is long ago', () => {
    const slow = Array.from({ length: 30 }, (_, i) => ({ from: i, to: i + 1, tokens: 1 }));
    const quick = Array.from({ length: 8 }, (_, i) => ({ from: 30 + i, to: 31 + i, tokens: 500 }));
    expect(rateOf([...slow, ...quick]).tokensPerSecond).toBe(500);
  });

  it('of a stream of jobs that overlap is the sum of the speeds of those that decode at the same time', () => {
    const shapes = fc.record({ beside: fc.integer({ min: 1, max: 8 }), count: fc.integer({ min: 24, max: 60 }) });
    fc.assert(
      fc.property(shapes, ({ beside, count }) => {
        const jobs = Array.from({ length: count }, (_, i) => ({ from: i, to: i + beside, tokens: 100 * beside }));
        const rate = rateOf(jobs);
        for (let i = 0; i < beside; i++) rate.begin(count + i); // the stream goes on: the last jobs are not counted
        expect(rate.tokensPerSecond).toBeCloseTo(100 * beside, -2);
      }),
    );
  });
});
