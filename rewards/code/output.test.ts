import { describe, expect, it } from 'vitest';
import fc from 'fast-check';
import { isExpectedOutput } from './output.ts';

describe('what a program printed', () => {
  it.each([
    ['equal', '1 2\n3\n', '1 2\n3\n', true],
    ['another number', '4', '5', false],
    ['white space around it', '\n 5 \n\n', '5', true],
    ['white space around its lines', ' 1 \n 2\t', '1\n2', true],
    ['white space between words', '1  2', '1 2', false],
    ['empty lines', '1\n\n2\n', '1\n2', true],
    ['empty lines, and white space around a printed line', 'a\n\n b\n', 'a\nb', false],
    ['line breaks of other systems', '1\r\n2\r\n', '1\n2\n', true],
    ['a float for a float', '0.333333', '0.33333333', true],
    ['a whole number for a float', '1', '1.0', true],
    ['a float for whole numbers', '2.0', '2', true],
    ['numbers too far apart', '1.001', '1.0', false],
    ['large whole numbers that differ', '100000000', '100000001', false],
    ['large negative whole numbers that differ a little', '-100000000', '-100000001', true],
    ['two numbers on a line', '1.0 2.0', '1 2', false],
    ['a line too few', '1.0', '1.0\n2.0', false],
    ['infinity', 'inf', 'Infinity', true],
    ['no number', 'nan', 'NaN', false],
    ['an underscore in a number', '1_000.0', '1000', true],
    ['digits of another script', '٣.5', '3.5', true],
    ['words in another order', 'b a', 'a b', false],
    ['nothing', '', '\n', true],
    ['nothing, where something is expected', '', '0', false],
  ])('%s', (_, printed, expected, right) => {
    expect(isExpectedOutput(printed, expected)).toBe(right);
  });

  it('is right when it is the expected text, whatever that is', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: 'grapheme' }),
        (text) => isExpectedOutput(text, text) || /[\p{Z}\p{Cc}]/u.test(text),
      ),
    );
    const isWhole = (number: number) => /^\d+$/.test(String(number));
    fc.assert(
      fc.property(fc.array(fc.double({ noNaN: true, min: -1e300, max: 1e300 }), { minLength: 1 }), (numbers) => {
        const near = numbers.map((one) => one * (1 + 1e-7));
        // Whole numbers must be equal: those from 2 ** 52 to 1e21 are printed with all digits, and are multiplied to
        // whole ones.
        return isExpectedOutput(numbers.join('\n'), near.join('\n')) || [...numbers, ...near].every(isWhole);
      }),
    );
  });
});
