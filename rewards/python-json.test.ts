import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parsePythonJson, pythonEquals, type PythonValue } from './python-json.ts';

const seed = 20_260_102;

/** The same value as JSON.parse gives it. */
function asJson(value: PythonValue): unknown {
  if (typeof value === 'bigint') return Number(value);
  if (value instanceof Map) return Object.fromEntries([...value].map(([key, item]) => [key, asJson(item)]));
  return Array.isArray(value) ? value.map((item: PythonValue) => asJson(item)) : value;
}

describe("Python's JSON", () => {
  test(`reads what JSON.parse reads (seed ${seed})`, () => {
    fc.assert(
      fc.property(fc.json(), fc.constantFrom('', ' ', '\n\t'), (text, space) => {
        const value = parsePythonJson(space + text + space);
        // Some names, such as "__proto__", are no properties of a plain object.
        if (!text.includes('__proto__')) expect(asJson(value)).toEqual(JSON.parse(text));
        expect(pythonEquals(value, parsePythonJson(text))).toBe(true);
      }),
      { seed, numRuns: 500 },
    );
  });

  test.each(['', '{', '[1,]', '{"a":1,}', '01', '1 2', "'a'", '"\t"', '{a:1}', '+1', '.5', 'None', '\ufeff1'])(
    'refuses %j',
    (text) => {
      expect(() => parsePythonJson(text)).toThrow(SyntaxError);
    },
  );

  test('knows NaN and Infinity, and integers of any size', () => {
    expect(parsePythonJson('[NaN, -Infinity, 12345678901234567891]')).toEqual([NaN, -Infinity, 12345678901234567891n]);
  });

  test.each<[string, string, boolean]>([
    ['3', '3.0', true],
    ['1', 'true', true],
    ['0', 'false', true],
    ['12345678901234567890', '12345678901234567891', false],
    ['9007199254740993', '9007199254740992.0', false],
    ['{"a":1,"b":2}', '{"b":2,"a":1}', true],
    ['[1,2]', '[2,1]', false],
    ['null', '0', false],
    ['NaN', 'NaN', false],
    ['[NaN]', '[NaN]', true],
    ['"1"', '1', false],
  ])('%s = %s: %s', (a, b, want) => {
    expect(pythonEquals(parsePythonJson(a), parsePythonJson(b))).toBe(want);
  });
});
