/**
 * `npm run record:arithmetic`: writes the bits of the present arithmetic version for the classes of processors that this
 * machine can compute, best on one with AMX. Bits of other classes stay while the version is the same.
 */
import { writeFileSync } from 'node:fs';
import { arithmeticVersion } from '../arithmetic.ts';
import { bitsFile, bitsOf, classNames, storedBits } from './bits.ts';
import type { Bits, ProcessorClass } from './bits.ts';

const before = storedBits();
const classes: Partial<Record<ProcessorClass, Bits>> =
  before.version === arithmeticVersion ? { ...before.classes } : {};
for (const name of classNames) {
  const found = bitsOf(name);
  const known = classes[name];
  if (found === undefined) {
    console.log(`${name}: this processor cannot compute it; ${known ? 'its bits stay' : 'record it on one that can'}`);
    continue;
  }
  if (known !== undefined && JSON.stringify(known) !== JSON.stringify(found)) {
    console.error(`${name}: the bits changed; raise arithmeticVersion in native/arithmetic.ts, then record again`);
    process.exit(1);
  }
  classes[name] = found;
  console.log(`${name}: recorded`);
}
writeFileSync(bitsFile, `${JSON.stringify({ version: arithmeticVersion, classes }, null, 2)}\n`);
