import fc from 'fast-check';
import { expect, test } from 'vitest';
import { largestIndices } from './largest.ts';

/** Few different values, so that most arrays have ties at the border. */
const value = fc.constantFrom(0, -0, 1, 2, 3, Infinity, -Infinity, NaN);
const task = fc.array(value, { minLength: 1, maxLength: 30 }).chain((values) =>
  fc.record({
    values: fc.constant(values),
    count: fc.integer({ min: 0, max: values.length }),
  }),
);

test('the largest values are those of a stable sort, the first among equals, NaN above all', () => {
  fc.assert(
    fc.property(task, ({ values, count }) => {
      const rank = (i: number) => (Number.isNaN(values[i]!) ? Infinity : values[i]!);
      const sorted = values.map((_, i) => i).sort((a, b) => (rank(a) === rank(b) ? a - b : rank(b) > rank(a) ? 1 : -1));
      const expected = sorted.slice(0, count).sort((a, b) => a - b);
      expect([...largestIndices(Float64Array.from(values), count)]).toEqual(expected);
    }),
    { numRuns: 500 },
  );
});

test('the largest of many different values are found, and the input is not reordered', () => {
  const values = Float64Array.from({ length: 5000 }, (_, i) => Math.sin(i * i));
  const before = values.slice();
  const threshold = values.toSorted().at(-700)!;
  const expected = Array.from(values.keys()).filter((i) => values[i]! >= threshold);
  expect([...largestIndices(values, 700)]).toEqual(expected);
  expect(values).toEqual(before);
});
