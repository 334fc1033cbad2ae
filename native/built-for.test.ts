/** What the built engine asks of a machine: a C library of 2018 or newer, and no function of it that rounds. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { addonFile } from './addon-file.ts';
import { packageRoot } from './package-root.ts';
import { neededSymbols } from './testing/elf.ts';

/** That of RHEL 8, on which Node 20 runs too. */
const oldest = [2, 28];

const files = [addonFile(), ...['reaper', 'guard'].map((name) => join(packageRoot(), `build/native/petrel-${name}`))];

it.each(files)('%s loads with glibc 2.28', (file) => {
  const newer = neededSymbols(readFileSync(file)).filter(({ version }) => {
    const [major = 0, minor = 0] = version.replace('GLIBC_', '').split('.').map(Number);
    return version.startsWith('GLIBC_') && (major > (oldest[0] ?? 0) || minor > (oldest[1] ?? 0));
  });
  expect(newer).toEqual([]);
});

it('asks the C++ library for nothing, or for nothing newer than that of RHEL 8', () => {
  const newest = { GLIBCXX_3: 25, CXXABI_1: 11 };
  const newer = neededSymbols(readFileSync(addonFile())).filter(({ version }) => {
    const [, family = '', last = '0'] = /^(GLIBCXX_3|CXXABI_1)\.\d+(?:\.(\d+))?$/.exec(version) ?? [];
    return Number(last) > (newest[family as keyof typeof newest] ?? Number.POSITIVE_INFINITY);
  });
  expect(newer).toEqual([]);
});

it('takes no function of the C library whose last bit is a matter of its version', () => {
  const rounding = /^(exp|exp2|expm1|log|log2|log10|log1p|pow|sin|cos|sincos|tan|sinh|cosh|tanh|atan2?|cbrt|hypot)f?$/;
  const names = neededSymbols(readFileSync(addonFile())).map(({ name }) => name);
  expect(names).toContain('memcpy');
  expect(names.filter((name) => rounding.test(name))).toEqual([]);
});
