import { describe, expect, it } from 'vitest';
import { parsePythonJson } from './json-values.ts';
import { decodeResult, isExpectedResult, showValue } from './values.ts';

const int = (value: number | string) => ({ int: String(value) });

describe('a result of a function', () => {
  it.each([
    ['an equal number', int(3), '3', true],
    ['another number', int(4), '3', false],
    ['a float that equals a whole number', { float: '3.0' }, '3', true],
    ['a whole number beyond 2^53', int('9007199254740993'), '9007199254740993', true],
    ['its neighbour', int('9007199254740992'), '9007199254740993', false],
    [
      'a float beside a whole number that it only comes near to',
      { float: '9007199254740992.0' },
      '9007199254740993',
      false,
    ],
    ['True for 1', true, '1', true],
    ['a text for a number', '3', '3', false],
    ['an equal list', [int(1), int(2)], '[1, 2]', true],
    ['the only element of a list', [int(1), int(2)], '[[1, 2]]', true],
    ['the first element of a list', int(1), '[1, 2]', true],
    ['a tuple for a list', { tuple: [int(1), int(2)] }, '[1, 2]', true],
    ['a tuple in a list', [{ tuple: [int(1)] }], '[[1]]', false],
    ['a tuple in a list that is the first element', [{ tuple: [int(1)] }], '[[[1]]]', true],
    ['a dictionary of numbers', { dict: [[int(1), 'a']] }, '{"1": "a"}', true],
    ['a dictionary of numbers, the first of a list', { dict: [[int(1), 'a']] }, '[{"1": "a"}, 5]', true],
    [
      'a dictionary of texts',
      {
        dict: [
          ['b', null],
          ['a', int(1)],
        ],
      },
      '{"a": 1, "b": null}',
      true,
    ],
    ['a dictionary with a key too few', { dict: [['a', int(1)]] }, '{"a": 1, "b": null}', false],
    ['a dictionary whose texts are numbers', { dict: [['1', 'a']] }, '{"1": "a"}', false],
    ['infinity', { float: 'inf' }, 'Infinity', true],
    ['no number', { float: 'nan' }, 'NaN', false],
    ['an empty list', [], '[]', true],
    ['nothing', null, 'null', true],
  ] as const)('%s', (_, result, expected, right) => {
    expect(isExpectedResult(decodeResult(result), parsePythonJson(expected))).toBe(right);
  });

  it('is shown as Python prints it', () => {
    const value = decodeResult({
      tuple: [int(-1), { float: '0.5' }, [true, null], { dict: [['a', { tuple: [int(1)] }]] }],
    });
    expect(showValue(value)).toBe('(-1, 0.5, [True, None], {"a": (1,)})');
  });

  it.each([{ int: 'x' }, { other: 1 }, 5, { dict: [[1]] }])('must be what the runner writes, and not %j', (value) => {
    expect(() => decodeResult(value)).toThrow('the runner wrote no value');
  });
});

describe('JSON of an expected value', () => {
  it('keeps every digit of whole numbers', () => {
    expect(parsePythonJson(' {"a": [12345678901234567890, -0.5e3, "\\u00e9\\"]"], "b": {}} ')).toEqual({
      type: 'dict',
      entries: [
        ['a', [12345678901234567890n, -500, 'é"]']],
        ['b', { type: 'dict', entries: [] }],
      ],
    });
  });

  it.each(['', '[1', '[1,]', '{"a" 1}', '{1: 2}', '1 2', 'nope', '"a'])('is refused if it is %j', (text) => {
    expect(() => parsePythonJson(text)).toThrow('this is no JSON');
  });
});
