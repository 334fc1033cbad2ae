import { describe, expect, it } from 'vitest';
import { EventCounts } from './event-counts.ts';

const shown = (counts: EventCounts, runId: string) => {
  const { metrics, committed } = counts.count(runId);
  return { numbers: Object.values(metrics), committed };
};

describe('events of workers by iteration', () => {
  it('are counted for each run since its own last commit', () => {
    const counts = new EventCounts(() => 3);
    counts.add('joined');
    counts.begin('a');
    counts.add('lost');
    counts.begin('b');
    counts.add('joined');
    counts.add('replaced');
    expect(counts.count('a').metrics).toEqual({
      'fleet/joined': 1,
      'fleet/notices': 0,
      'fleet/lost': 1,
      'fleet/replaced': 1,
      'fleet/workers': 3,
    });
    shown(counts, 'a').committed();
    counts.add('notice');
    expect(shown(counts, 'a').numbers).toEqual([0, 1, 0, 0, 3]);
    expect(shown(counts, 'b').numbers).toEqual([1, 1, 0, 1, 3]);
  });

  it('are counted again when the commit failed, and what comes during a commit belongs to the next iteration', () => {
    const counts = new EventCounts(() => 0);
    counts.begin('a');
    counts.add('lost');
    expect(shown(counts, 'a').numbers[2]).toBe(1);
    const second = shown(counts, 'a');
    expect(second.numbers[2]).toBe(1);
    counts.add('lost');
    second.committed();
    expect(shown(counts, 'a').numbers[2]).toBe(1);
  });

  it('go on when a run is recovered, begin anew after its end, and without a beginning are those of the process', () => {
    const counts = new EventCounts(() => 0);
    counts.begin('a');
    counts.add('lost');
    counts.begin('a');
    expect(shown(counts, 'a').numbers[2]).toBe(1);
    counts.end('a');
    counts.begin('a');
    expect(shown(counts, 'a').numbers[2]).toBe(0);
    expect(shown(counts, 'of a process before').numbers[2]).toBe(1);
  });
});
