import { describe, expect, it } from 'vitest';
import { growthOf, judge } from './growth.ts';
import type { ProcessSample } from './processes.ts';

/** A process that lives over several rounds, with its memory after each. */
const life = (incarnation: string, from: number, levels: readonly number[]): ProcessSample[] =>
  levels.map((residentMiB, i) => ({
    round: from + i,
    kind: 'worker',
    incarnation,
    residentMiB,
    handles: 20 + (i % 2),
    threads: 9,
  }));

describe('growth over rounds', () => {
  const warm = Array.from({ length: 18 }, (_, i) => 60 + i * 5);

  it('is found across restarts, after each of which memory starts at a lower level', () => {
    const leaking = (incarnation: string, from: number) =>
      life(incarnation, from, [...warm, ...Array.from({ length: 32 }, (_, i) => 100 + 4 * i)]);
    const [growth] = growthOf([...leaking('a', 1), ...leaking('b', 51), ...leaking('c', 101)]);
    expect(growth).toMatchObject({ kind: 'worker', incarnations: 3, samples: 150, memory: { perRound: 4, error: 0 } });
    expect(Math.abs(growth?.handles?.perRound ?? 1)).toBeLessThan(0.25);
  });

  it('does not include the warm-up of the first rounds', () => {
    expect(growthOf(life('a', 1, [...warm, ...Array.from({ length: 32 }, () => 120)]))[0]?.memory?.perRound).toBe(0);
  });

  it('has an error that follows the scatter of its samples', () => {
    const [growth] = growthOf(life('a', 1, [...warm, ...Array.from({ length: 32 }, (_, i) => 100 + (i % 2) * 60)]));
    expect(growth?.memory?.error).toBeGreaterThan(0.5);
    expect(judge(growth?.memory, 1)).toBeUndefined();
    expect(judge({ perRound: 4, error: 0.5 }, 1)).toBe(false);
    expect(judge({ perRound: 0.2, error: 0.1 }, 1)).toBe(true);
  });

  it('is reported by age: the median of the processes that lived that long', () => {
    const [growth] = growthOf([
      ...life('a', 1, [10, 11, 12, 13, 14]),
      ...life('b', 6, [20, 21, 22, 23, 30]),
      ...life('c', 11, [60]),
    ]);
    expect([...(growth?.atAge ?? [])]).toEqual([
      [1, 20],
      [5, 22],
    ]);
  });

  it('is unknown where no process lived long enough', () => {
    expect(growthOf([...life('a', 1, [1, 2, 3, 4, 5, 6]), ...life('b', 7, [1, 2])])[0]?.memory).toBeUndefined();
  });
});
