import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { merged } from './parallel.ts';

async function* counting(from: number, to: number, ended: number[] = []): AsyncGenerator<number> {
  try {
    for (let i = from; i < to; i++) {
      await delay(0);
      yield i;
    }
  } finally {
    ended.push(from);
  }
}

async function* failing(after: number): AsyncGenerator<number> {
  yield* counting(100, 100 + after);
  throw new Error('failed');
}

describe('merged streams', () => {
  it('give everything of each, in its order', async () => {
    const found: number[] = [];
    for await (const one of merged([counting(0, 5), counting(10, 12), counting(20, 20)])) found.push(one);
    expect(found.filter((one) => one < 10)).toEqual([0, 1, 2, 3, 4]);
    expect(found.filter((one) => one >= 10)).toEqual([10, 11]);
  });

  it('end with their reader', async () => {
    const ended: number[] = [];
    for await (const _ of merged([counting(0, 1000, ended), counting(5000, 6000, ended)])) break;
    expect(ended.sort()).toEqual([0, 5000]);
  });

  it('fail with one of them, and not before their reader asks', async () => {
    const unhandled: unknown[] = [];
    const note = (reason: unknown) => void unhandled.push(reason);
    process.on('unhandledRejection', note);
    try {
      const read = async () => {
        for await (const _ of merged([failing(1), counting(0, 1000)])) await delay(5);
      };
      await expect(read()).rejects.toThrow('failed');
      expect(unhandled).toEqual([]);
    } finally {
      process.off('unhandledRejection', note);
    }
  });
});
