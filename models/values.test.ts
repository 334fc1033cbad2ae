import { expect, it } from 'vitest';
import { decodeValues, encodeValues } from './values.ts';

const origin = { iteration: 3, parentState: 'a'.repeat(64) };

it.each([[[]], [[0.5, -1, Number.NaN]]])('values are read as they were written: %j', (numbers) => {
  const values_T = Float32Array.from(numbers);
  expect(decodeValues(encodeValues(values_T, origin), 'b', numbers.length)).toEqual(values_T);
});

it('values of two batches are two objects, and those of another batch are refused', () => {
  const bytes = encodeValues(new Float32Array(2), origin);
  expect(bytes).not.toEqual(encodeValues(new Float32Array(2), { ...origin, iteration: 4 }));
  expect(bytes).not.toEqual(encodeValues(new Float32Array(2), { ...origin, parentState: 'b'.repeat(64) }));
  expect(() => decodeValues(bytes, 'blob', 3)).toThrow('tensor values: expected 3 values, found 2');
});
