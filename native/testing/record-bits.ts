/**
 * `npm run record:arithmetic`: writes the bits of the present arithmetic versions for the classes of processors that
 * this machine can compute, best on one with AMX. Bits of other classes stay while the version is the same.
 */
import { writeFileSync } from 'node:fs';
import type { ComputeType } from '../../core/ports/policy.ts';
import { arithmeticVersions } from '../arithmetic.ts';
import { bitsFile, bitsOf, classNames, storedBits } from './bits.ts';
import type { Bits, ProcessorClass } from './bits.ts';

const before = storedBits();
const isKept = (what: string) => {
  const compute: ComputeType = what.startsWith('bf16') ? 'bf16' : 'fp32';
  return before.versions[compute] === arithmeticVersions[compute];
};
const classes: Partial<Record<ProcessorClass, Bits>> = {};
for (const name of classNames) {
  const kept = Object.fromEntries(Object.entries(before.classes[name] ?? {}).filter(([what]) => isKept(what)));
  const found = bitsOf(name);
  classes[name] = { ...kept, ...found };
  if (found === undefined) {
    console.log(
      `${name}: this processor cannot compute it; recorded elsewhere: ${Object.keys(kept).join(', ') || 'nothing'}`,
    );
    continue;
  }
  const changed = Object.entries(kept).filter(([what, bits]) => found[what] !== bits);
  if (changed.length > 0) {
    console.error(
      `${name}: the bits of ${changed.map(([what]) => what).join(', ')} changed; raise its version in native/arithmetic.ts, then record again`,
    );
    process.exit(1);
  }
  console.log(`${name}: recorded`);
}
writeFileSync(bitsFile, `${JSON.stringify({ versions: arithmeticVersions, classes }, null, 2)}\n`);
