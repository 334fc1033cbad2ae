import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { canonicalJson } from './canonical.ts';

describe('canonicalJson', () => {
  it('sorts keys by UTF-16 code units at every depth and writes no blanks', () => {
    expect(canonicalJson({ b: [1, { d: null, c: true }], a: 'x' })).toBe('{"a":"x","b":[1,{"c":true,"d":null}]}');
    expect(canonicalJson({ '\ufb33': 1, '\u{1f600}': 2, '\u20ac': 3 })).toBe('{"\u20ac":3,"\u{1f600}":2,"\ufb33":1}');
  });

  it('writes numbers as ECMAScript does', () => {
    // biome-ignore lint/correctness/noPrecisionLoss: the example of RFC 8785, which rounds this number.
    expect(canonicalJson([1e21, 1e-6, 1e-7, -0, 4.5, 1e23, 333333333.33333329])).toBe(
      '[1e+21,0.000001,1e-7,0,4.5,1e+23,333333333.3333333]',
    );
  });

  it('leaves out undefined members, as JSON does', () => {
    expect(canonicalJson({ a: undefined, b: 1 })).toBe('{"b":1}');
  });

  it.each([[NaN], [Infinity], [[undefined]], [10n], ['\ud800'], [new Date(0)], [new Map()], [() => 1]])(
    'refuses %s',
    (value) => {
      expect(() => canonicalJson(value)).toThrow(/canonical JSON/);
    },
  );

  it('gives the place of a value that it refuses', () => {
    expect(() => canonicalJson({ a: [1, NaN] })).toThrow(expect.objectContaining({ where: '$.a[1]' }));
  });

  it('gives the same text for any order of keys, and loses nothing', () => {
    fc.assert(
      fc.property(fc.jsonValue({ noUnicodeString: false }), (value) => {
        const text = canonicalJson(value);
        expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(value)));
        expect(canonicalJson(reversed(value))).toBe(text);
      }),
    );
  });
});

function reversed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(reversed);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([name, item]) => [name, reversed(item)]),
  );
}
