/**
 * The functions of core/math have one result for an argument, on every Node, and the one that V8 gave to earlier
 * builds.
 */
import { describe, expect, it } from 'vitest';
import { cos } from '../../core/math/cos.ts';
import { digests, forArguments, subjects } from './digests.ts';
import { recordedCount, recordedDigests } from './recorded.ts';

it('has the recorded bits', () => {
  expect(digests(recordedCount)).toEqual(recordedDigests);
});

const major = Number(process.versions.node.split('.')[0]);
/** V8's own power function gave way to that of the C library after Node 22. */
const comparable = Object.entries(subjects).filter(([name]) => name !== 'pow' || major < 24);

describe.skipIf(process.arch !== 'x64')('V8 on x86-64 (skipped: other processors round otherwise)', () => {
  for (const [name, subject] of comparable) {
    it(`has the same bits for ${name} at 180,000 arguments and more`, () => {
      let asked = 0;
      const others: string[] = [];
      forArguments(subject, 60_000, (x, y) => {
        asked += 1;
        if (!Object.is(subject.own(x, y), subject.engine(x, y)) && others.length < 5) others.push(`${x}, ${y}`);
      });
      expect(others).toEqual([]);
      expect(asked).toBeGreaterThan(subject.takesAll ? 200_000 : 180_000);
    });
  }
});

it('refuses an angle that its reduction cannot take exactly', () => {
  expect(() => cos(1e9)).toThrow('cos takes angles up to');
});
