import { describe, expect, it } from 'vitest';
import { growthOf, judge } from './growth.ts';
import type { ProcessSample } from './processes.ts';

/** A process that lives from one round to another, with so much memory in each. */
const life = (incarnation: string, from: number, levels: readonly number[]): ProcessSample[] =>
  levels.map((residentMiB, i) => ({ round: from + i, kind: 'worker', incarnation, residentMiB, handles: 20 + (i % 2), threads: 9 }));

describe('growth over rounds', () => {
  const warm = Array.from({ length: 18 }, (_, i) => 60 + i * 5);

  it('is seen through restarts, each of which begins anew at a lower level', () => {
    const leaking = (incarnation: string, from: number) => life(incarnation, from, [...warm, 100, 104, 108, 112, 116, 120, 124, 128]);
    const [growth] = growthOf([...leaking('a', 1), ...leaking('b', 27), ...leaking('c', 53)]);
    expect(growth).toMatchObject({ kind: 'worker', incarnations: 3, samples: 78, memory: { perRound: 4, error: 0 } });
    expect(Math.abs(growth?.handles?.perRound ?? 1)).toBeLessThan(0.25);
  });

  it('is not the warming up of its first rounds', () => {
    expect(growthOf(life('a', 1, [...warm, ...Array.from({ length: 8 }, () => 120)]))[0]?.memory?.perRound).toBe(0);
  });

  it('is as uncertain as its samples are scattered', () => {
    const [growth] = growthOf(life('a', 1, [...warm, 100, 140, 102, 139, 101, 141, 100, 140]));
    expect(growth?.memory?.error).toBeGreaterThan(2);
    expect(judge(growth?.memory, 1)).toBeUndefined();
    expect(judge({ perRound: 4, error: 0.5 }, 1)).toBe(false);
    expect(judge({ perRound: 0.2, error: 0.1 }, 1)).toBe(true);
  });

  it('is unknown where no process lived long enough', () => {
    expect(growthOf([...life('a', 1, [1, 2, 3, 4, 5, 6]), ...life('b', 7, [1, 2])])[0]?.memory).toBeUndefined();
  });
});
