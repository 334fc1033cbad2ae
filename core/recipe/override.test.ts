import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { applyOverrides, parseOverride } from './override.ts';

function valueOf(source: string): unknown {
  const override = parseOverride(source);
  return override.type === 'set' ? override.value : undefined;
}

describe('parseOverride', () => {
  it.each([
    ['a=1e-6', 1e-6],
    ['a=-3', -3],
    ['a=.5', 0.5],
    ['a=10_000', 10000],
    ['a=true', true],
    ['a=False', false],
    ['a=null', null],
    ['a=', ''],
    ['a=on', 'on'],
    ['a=1.2.3', '1.2.3'],
    ['a="1"', '1'],
    ["a='it\\'s'", "it's"],
    ['a=data/train.jsonl', 'data/train.jsonl'],
    ['a=s3://bucket/x=y', 's3://bucket/x=y'],
    ['a=[]', []],
    ['a=[1, two,"three, four",[5]]', [1, 'two', 'three, four', [5]]],
    ['a={b: 1, "c d": [x]}', { b: 1, 'c d': ['x'] }],
  ])('reads %s', (source, value) => {
    expect(valueOf(source)).toEqual(value);
  });

  it('accepts Hydra’s + for new keys, and ~ for the default', () => {
    expect(parseOverride('+a.b=1')).toMatchObject({ type: 'set', path: ['a', 'b'], value: 1 });
    expect(parseOverride('~a.b')).toMatchObject({ type: 'remove', path: ['a', 'b'] });
  });

  it.each(['a', '=1', 'a..b=1', 'a=[1', 'a=[1,]', 'a="x', 'a="x"y', 'a={b}', '~a=1', '1a=2'])(
    'refuses %s and shows the position',
    (source) => {
      expect(() => parseOverride(source)).toThrow(
        expect.objectContaining({ code: 'InvalidInput', message: expect.stringMatching(/\^$/) }),
      );
    },
  );

  it('parses any JSON value that was written in override syntax', () => {
    const leaf = fc.oneof(
      // An override has no minus zero.
      fc.double({ noNaN: true, noDefaultInfinity: true }).map((x) => (x === 0 ? 0 : x)),
      fc.boolean(),
      fc.constant(null),
      fc.string(),
    );
    const { value } = fc.letrec((tie) => ({
      value: fc.oneof(
        { depthSize: 'small' },
        leaf,
        fc.array(tie('value'), { maxLength: 3 }),
        fc.dictionary(fc.string(), tie('value'), { maxKeys: 3 }),
      ),
    }));
    fc.assert(
      fc.property(value, (wanted) => {
        expect(valueOf(`a.b=${written(wanted)}`)).toEqual(wanted);
      }),
    );
  });
});

/** A value in override syntax: texts in quotes, with only quote and backslash escaped. */
function written(value: unknown): string {
  if (typeof value === 'string') return `"${value.replace(/[\\"]/g, '\\$&')}"`;
  if (Array.isArray(value)) return `[${value.map(written).join(', ')}]`;
  if (typeof value === 'object' && value !== null) {
    return `{${Object.entries(value)
      .map(([name, item]) => `${written(name)}: ${written(item)}`)
      .join(', ')}}`;
  }
  return String(value);
}

describe('applyOverrides', () => {
  const apply = (tree: Readonly<Record<string, unknown>>, ...sources: string[]) =>
    applyOverrides(tree, sources.map(parseOverride));

  it('sets values, replaces whole lists, and restores defaults; later ones win', () => {
    expect(apply({ a: { b: [1, 2], c: 3 } }, 'a.b=[9]', 'd.e=1', 'd.e=2', '~a.c')).toEqual({
      a: { b: [9] },
      d: { e: 2 },
    });
  });

  it('does not change its input', () => {
    const tree = Object.freeze({ a: Object.freeze({ b: 1 }) });
    expect(apply(tree, 'a.b=2', '~a.b')).toEqual({ a: {} });
    expect(tree).toEqual({ a: { b: 1 } });
  });

  it('cannot reach a prototype', () => {
    apply({}, '__proto__.polluted=1');
    expect(({} as Readonly<Record<string, unknown>>)['polluted']).toBeUndefined();
  });
});

it('a value that is nested too deeply is refused', () => {
  expect(() => parseOverride(`a.b=${'['.repeat(10_000)}`)).toThrow('at most 100 levels');
});
