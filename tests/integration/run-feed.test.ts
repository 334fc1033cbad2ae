/** Viewers of a run follow its feed: they hardly read the store, and miss nothing when the control process dies. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { followMetrics } from '../../api/runs/follow-metrics.ts';
import { followRun } from '../../api/runs/follow.ts';
import { followFeed } from '../../api/runs/run-feed.ts';
import { feedWhole } from '../../core/run-feed.ts';
import type { Store } from '../../core/ports/store.ts';
import { RunLog } from '../../log/run/run-log.ts';
import { LoopUnderTest } from '../loop-under-test.ts';
import type { StartedRun } from '../loop-under-test.ts';
import { kill } from '../stack-under-test.ts';

const loop = new LoopUnderTest();
beforeAll(() => loop.up());
afterAll(() => loop.remove());

/** A log whose reads are counted. */
function countedLog({ log: { store, runId } }: StartedRun): { readonly log: RunLog; readonly reads: () => number } {
  let reads = 0;
  const counted = new Proxy(store, {
    get(of, name) {
      const value: unknown = Reflect.get(of, name, of);
      if (typeof value !== 'function') return value;
      return (...args: unknown[]) => {
        if (['get', 'head', 'list', 'children', 'stream'].includes(String(name))) reads++;
        return Reflect.apply(value, of, args) as unknown;
      };
    },
  }) satisfies Store;
  return { log: new RunLog(counted, runId), reads: () => reads };
}

const range = (last: number): number[] => Array.from({ length: last }, (_, i) => i + 1);

/** What `petrel run`, `petrel metrics -f` and the reader of the whole feed see of a run until it ends. */
function view(run: StartedRun) {
  const [shown, listed, fed] = [countedLog(run), countedLog(run), countedLog(run)];
  const { signal } = new AbortController();
  const iterations: number[] = [];
  const rows: number[] = [];
  const feed: number[] = [];
  const ended = Promise.all([
    followRun(shown.log, loop, {
      signal,
      onProgress: ({ iteration }) => {
        if (iteration !== iterations.at(-1)) iterations.push(iteration);
      },
    }),
    followMetrics(listed.log, { last: 100, signal, home: loop.home, take: ({ iteration }) => rows.push(iteration) }),
    followFeed(fed.log, loop, {
      from: feedWhole,
      signal,
      take: ({ iterations: news }) => feed.push(...news.map(({ iteration }) => iteration)),
    }),
  ]);
  return { ended, iterations, rows, feed, reads: () => [shown.reads(), listed.reads(), fed.reads()] as const };
}

describe('three viewers of a run', () => {
  it('of 25 iterations read the store a few times, at the beginning and at the end', async () => {
    const run = await loop.start({ trainer: { total_training_steps: 25, test_freq: 5 } });
    const viewers = view(run);
    await loop.passes(run, 3);
    const begun = viewers.reads();
    await loop.passes(run, 22);
    const between = viewers.reads();
    expect((await viewers.ended)[0]).toBe('completed');
    expect(viewers.rows).toEqual(range(25));
    expect(viewers.feed).toEqual(range(25));
    expect(viewers.iterations.at(-1)).toBe(25);
    expect(viewers.iterations).toEqual([...viewers.iterations].sort((a, b) => a - b));
    console.log(
      `reads of the store: ${begun.join(' and ')}, ${between.join(' and ')}, ${viewers.reads().join(' and ')}`,
    );
    // 800 without the feed. A process that a busy machine keeps waiting may be silent for a moment.
    for (const reads of viewers.reads()) expect(reads).toBeLessThanOrEqual(100);
  });

  it('see every iteration once and the end, when the control process is killed', async () => {
    const run = await loop.start({ trainer: { total_training_steps: 14 } });
    const viewers = view(run);
    await loop.passes(run, 4);
    await kill(loop.process('control'));
    await loop.passes(run, 9);
    expect((await viewers.ended)[0]).toBe('completed');
    expect(viewers.rows).toEqual(range(14));
    expect(viewers.feed).toEqual(range(14));
    expect(viewers.iterations.at(-1)).toBe(14);
  });
});
