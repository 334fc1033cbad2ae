/** The bits of the engine are those that its arithmetic version names. */
import { describe, expect, it } from 'vitest';
import { arithmeticOf, arithmeticVersions, engineInfo } from './index.ts';
import { bitsOf, classNames, computable, storedBits } from './testing/bits.ts';

const advice =
  'The engine gives other bits than its arithmetic version says. If that is intended, raise its version in ' +
  'native/arithmetic.ts and record again: npm run record:arithmetic';

describe(`the arithmetic of version ${arithmeticVersions.fp32} in fp32 and ${arithmeticVersions.bf16} in bf16`, () => {
  const stored = storedBits();
  const here = computable();

  it('is that of the stored bits', () => {
    expect(stored.versions, advice).toEqual(arithmeticVersions);
  });

  for (const name of classNames) {
    const can = here.includes(name);
    it.skipIf(!can)(
      `gives the stored bits on ${name}${can ? '' : ' (skipped: this processor cannot compute it)'}`,
      () => {
        expect(bitsOf(name), advice).toEqual(stored.classes[name]);
      },
    );
  }

  it('gives the same deterministic bits on every class of processor in fp32', () => {
    const deterministic = Object.values(stored.classes).map((bits) =>
      Object.entries(bits).filter(([what]) => what.startsWith('fp32 deterministic')),
    );
    expect(deterministic.length).toBeGreaterThan(0);
    for (const bits of deterministic) expect(bits).toEqual(deterministic[0]);
  });

  it('is named without the processor for deterministic results in fp32 only', () => {
    const amx = { ...engineInfo(), isa: 'amx' } as const;
    expect(arithmeticOf({ compute: 'fp32', deterministic: true }, amx)).toBe(
      `${arithmeticVersions.fp32} deterministic`,
    );
    expect(arithmeticOf({ compute: 'bf16', deterministic: true }, amx)).toMatch(/amx$/);
    expect(arithmeticOf({ compute: 'fp32', deterministic: false }, amx)).toMatch(/amx$/);
  });
});
