import { describe, expect, test } from 'vitest';
import { exact } from './exact.ts';
import { lastInteger, lastIntegerIn } from './last-integer.ts';
import { scorerByName, scorerNameFor } from './registry.ts';
import { toScored } from './result.ts';

const input = (solutionStr: string, groundTruth: unknown) => ({ dataSource: 'test', solutionStr, groundTruth });

describe('exact', () => {
  test('ignores only surrounding white space', () => {
    expect(exact(input(' 42\n', '42'), {})).toEqual({ score: 1, acc: true });
    expect(exact(input('42', 42), {})).toEqual({ score: 1, acc: true });
    expect(exact(input('42.', '42'), {})).toEqual({ score: 0, acc: false });
    expect(() => exact(input('null', null), {})).toThrow('exact expects a text as ground truth, got none');
  });
});

describe('last_integer', () => {
  test.each([
    ['The answer is 82.', 82n],
    ['37 + 45 = 82', 82n],
    ['1,234 apples', 1234n],
    ['= -7', -7n],
    ['4-2', 2n],
    ['x2y', 2n],
    ['007', 7n],
    ['no number', undefined],
    ['99999999999999999999', 99999999999999999999n],
  ])('%s', (text, want) => {
    expect(lastIntegerIn(text)).toBe(want);
  });

  test('compares numbers', () => {
    expect(lastInteger(input('so 1,234', '1234'), {})).toEqual({ score: 1, acc: true });
    expect(lastInteger(input('12 or 13', '12'), {})).toEqual({ score: 0, acc: false });
    expect(lastInteger(input('', '0'), {})).toEqual({ score: 0, acc: false });
  });

  test('refuses a ground truth without an integer: no response could be right', () => {
    for (const truth of ['', 'two', null])
      expect(() => lastInteger(input('2', truth), {})).toThrow(/last_integer expects a text.* as ground truth, got/);
  });
});

describe('the registry', () => {
  test('chooses by data source and refuses unknown ones', () => {
    expect(scorerNameFor('openai/gsm8k')).toBe('gsm8k');
    expect(scorerNameFor('exact')).toBe('exact');
    expect(() => scorerNameFor('elsewhere')).toThrow(/no scorer for data_source "elsewhere"/);
    expect(() => scorerByName('gsm9k')).toThrow(/unknown scorer/);
  });
});

describe('the return value of a scorer', () => {
  test('is a finite number, an object with a score, or a list that starts with one', () => {
    expect(toScored(0.5)).toEqual({ score: 0.5, columns: {} });
    expect(toScored(true)).toEqual({ score: 1, columns: {} });
    expect(toScored([2, 'why'])).toEqual({ score: 2, columns: {} });
    expect(toScored({ score: 1, acc: true, pred: null, skip: undefined })).toEqual({
      score: 1,
      columns: { acc: true, pred: null },
    });
  });

  test.each([[NaN], [Infinity], ['1'], [null], [undefined], [{}], [{ score: '1' }], [[]], [1n]])(
    'is refused when it is %s',
    (value) => {
      expect(() => toScored(value)).toThrow(/finite number|needs "score"/);
    },
  );
});
