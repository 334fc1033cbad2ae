import fc from 'fast-check';
import { expect, test } from 'vitest';
import { balanceRanks } from './ranks.ts';

test('balancing over ranks only reorders rows', () => {
  const lengths = fc.array(fc.integer({ min: 1, max: 100 }), { minLength: 2, maxLength: 40 });
  fc.assert(
    fc.property(lengths, (lengths_S) => {
      const even = lengths_S.slice(0, lengths_S.length - (lengths_S.length % 2));
      expect([...balanceRanks(even, 2).order].sort((a, b) => a - b)).toEqual(even.map((_, s) => s));
    }),
  );
});
