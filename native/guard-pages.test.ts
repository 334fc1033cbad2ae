/**
 * With PETREL_GUARD_PAGES=1, each block of the engine's memory ends where a page without access begins. A kernel that
 * reads or writes one element too many ends the process, also with masked vector instructions, which sanitizers miss.
 */
import { describe, expect, it } from 'vitest';
import { testedClasses } from './testing/bits.ts';
import { linesOf } from './testing/child.ts';

const [first, count] = [1, 25];

describe('training and generation of random odd shapes', () => {
  for (const { name, title, env } of testedClasses()) {
    it.skipIf(env === undefined)(
      `stay inside their memory and give the same bits, seeds ${first} to ${first + count - 1}, on ${title}`,
      () => {
        const run = (guard: string) =>
          linesOf('print-random-work.ts', {
            args: [String(first), String(count)],
            env: { ...env, PETREL_GUARD_PAGES: guard },
          });
        const guarded = run('1');
        expect(guarded).toHaveLength(count * (name.startsWith('avx512_') || name === 'amx' ? 2 : 1));
        expect(guarded).toEqual(run(''));
      },
    );
  }
});
