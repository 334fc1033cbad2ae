import fc from 'fast-check';
import { expect, test } from 'vitest';
import { philox4x32, philoxUniform } from './philox.ts';

const ones = 0xffffffff;

test('philox gives the published known answers', () => {
  expect(philox4x32([0, 0, 0, 0], [0, 0])).toEqual([0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8]);
  expect(philox4x32([ones, ones, ones, ones], [ones, ones])).toEqual([0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd]);
  expect(philox4x32([0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344], [0xa4093822, 0x299f31d0])).toEqual([
    0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1,
  ]);
});

test('uniform numbers lie in [0, 1) and have the mean ½', () => {
  const word = fc.nat(ones);
  fc.assert(
    fc.property(fc.tuple(word, word, word, word), fc.tuple(word, word), (counter, key) => {
      const u = philoxUniform(counter, key);
      expect(u >= 0 && u < 1).toBe(true);
    }),
  );
  const draws = Array.from({ length: 4000 }, (_, i) => philoxUniform([0, 0, 0, i], [7, 1]));
  expect(draws.reduce((sum, u) => sum + u, 0) / draws.length).toBeCloseTo(0.5, 1);
  expect(new Set(draws).size).toBe(draws.length);
});
