import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { growth } from '../tests/processor-time.ts';
import { Float, isLossy, parseJson } from './json.ts';

describe('parseJson', () => {
  it('keeps details that JSON.parse loses', () => {
    expect(parseJson('[1, 1.0, 1e2, 1.5, 123456789012345678901, -0.0]')).toEqual([
      1,
      new Float(1),
      new Float(100),
      1.5,
      123456789012345678901n,
      new Float(-0),
    ]);
    expect([...(parseJson('{"2": "b", "1": "a"}') as Map<string, string>)]).toEqual([
      ['2', 'b'],
      ['1', 'a'],
    ]);
    expect(JSON.stringify(parseJson('{"a": 1.0}'))).toBe('{"a":1}');
  });

  it('agrees with JSON.parse on everything else, text for text (property)', () => {
    const plain = (value: unknown): unknown => {
      if (value instanceof Float) return value.value;
      if (typeof value === 'bigint') return Number(value);
      if (Array.isArray(value)) return value.map(plain);
      if (value instanceof Map)
        return Object.fromEntries([...(value as Map<string, unknown>)].map(([key, item]) => [key, plain(item)]));
      if (typeof value === 'object' && value !== null)
        return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, plain(item)]));
      return value;
    };
    fc.assert(
      fc.property(fc.json(), fc.boolean(), (text, pad) => {
        // The padding forces the lossless reader.
        const source = pad ? `[1.0, ${text}]` : text;
        expect(JSON.stringify(plain(parseJson(source)))).toBe(JSON.stringify(JSON.parse(source)));
      }),
      { numRuns: 500 },
    );
  });

  it('refuses what JSON.parse refuses (property)', () => {
    const broken = fc.tuple(
      fc.json(),
      fc.nat(60),
      fc.constantFrom('', '"', ',', '}', ']', ':', '1', 'x', '\\', '\n', '-'),
    );
    fc.assert(
      fc.property(broken, ([text, at, insert]) => {
        const source = `[1.0,${text.slice(0, at)}${insert}${text.slice(at + 1)}]`;
        expect(isLossy(source)).toBe(true);
        const accepted = (parse: (text: string) => unknown): boolean => {
          try {
            parse(source);
            return true;
          } catch (error) {
            expect(error).toBeInstanceOf(SyntaxError);
            return false;
          }
        };
        expect(accepted(parseJson)).toBe(accepted(JSON.parse));
      }),
      { numRuns: 1000 },
    );
  });

  it.each<readonly [string, (size: number) => string]>([
    ['zeros after the point', (size) => `[1.${'0'.repeat(size)}1]`],
    ['nines after the point', (size) => `[0.${'9'.repeat(size)}]`],
    ['digits', (size) => `[1.0, ${'1'.repeat(size)}]`],
    ['letters', (size) => `[1.0, "${'x'.repeat(20 * size)}"]`],
    ['escapes', (size) => `[1.0, "${'\\n'.repeat(10 * size)}"]`],
    ['blanks', (size) => `[${'"1" , '.repeat(size)}`],
  ])('takes time proportional to the text: long runs of %s', (_, textOf) => {
    const read = (scale: number) => {
      try {
        parseJson(textOf(25_000 * scale));
      } catch (error) {
        expect(error).toBeInstanceOf(SyntaxError);
      }
    };
    expect(growth(read)).toBeLessThan(24);
  });

  it('refuses integers with more digits than Python accepts', () => {
    expect(parseJson(`[${'9'.repeat(4300)}]`)).toEqual([BigInt('9'.repeat(4300))]);
    expect(() => parseJson(`[${'9'.repeat(4301)}]`)).toThrow(/more than 4300 digits/);
  });

  it('refuses very deep nesting instead of overflowing the stack', () => {
    expect(() => parseJson(`${'['.repeat(100_000)}1.0`)).toThrow(SyntaxError);
  });
});

describe('digits in strings', () => {
  const likeNumbers = fc.constantFrom('1.0', '1e5', '-0', '12345678901234567890', 'NaN', '"', '\\', '\\"1":', 'é', ' ');
  const text = fc.array(likeNumbers, { maxLength: 6 }).map((parts) => parts.join(''));

  it('do not make a text lossy, and numbers beside them do (property)', () => {
    fc.assert(
      fc.property(fc.array(fc.record({ key: text, value: text })), (rows) => {
        const plain = JSON.stringify(rows);
        expect(isLossy(plain)).toBe(false);
        expect(parseJson(plain)).toEqual(rows);
        expect(isLossy(plain.replace(/\]$/, `${rows.length > 0 ? ',' : ''}1.0]`))).toBe(true);
        expect(isLossy(`{"12":${plain}}`)).toBe(true);
      }),
    );
  });
});
