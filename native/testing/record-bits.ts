/**
 * `npm run record:arithmetic`: writes the bits of the present arithmetic versions for the classes of processors that
 * this machine can compute, best on one with AMX. Bits of other classes stay while the version is the same. The digests
 * of the engine's own probe go to native/proof/recorded.ts.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ComputeType } from '../../core/parameters.ts';
import { arithmeticVersions } from '../arithmetic.ts';
import { packageRoot } from '../package-root.ts';
import { recordedProbes } from '../proof/recorded.ts';
import { bitsFile, classNames, printedOf, storedBits } from './bits.ts';
import type { Bits, ProcessorClass } from './bits.ts';

const before = storedBits();
const isKept = (what: string) => {
  const compute: ComputeType = what.startsWith('bf16') ? 'bf16' : 'fp32';
  return before.versions[compute] === arithmeticVersions[compute];
};
const probes: Record<string, string> = { ...recordedProbes };
const classes: Partial<Record<ProcessorClass, Bits>> = {};
for (const name of classNames) {
  const kept = Object.fromEntries(Object.entries(before.classes[name] ?? {}).filter(([what]) => isKept(what)));
  const printed = printedOf(name);
  const found = printed?.bits;
  classes[name] = { ...kept, ...found };
  if (printed === undefined || found === undefined) {
    console.log(
      `${name}: this processor cannot compute it; recorded elsewhere: ${Object.keys(kept).join(', ') || 'nothing'}`,
    );
    continue;
  }
  const changed = [
    ...Object.entries(kept).filter(([what, bits]) => found[what] !== bits),
    ...Object.entries(printed.probes).filter(([profile, digest]) => (recordedProbes[profile] ?? digest) !== digest),
  ];
  if (changed.length > 0) {
    console.error(
      `${name}: the bits of ${changed.map(([what]) => what).join(', ')} changed; raise its version in native/arithmetic.ts, then record again`,
    );
    process.exit(1);
  }
  Object.assign(probes, printed.probes);
  console.log(`${name}: recorded`);
}
writeFileSync(bitsFile, `${JSON.stringify({ versions: arithmeticVersions, classes }, null, 2)}\n`);

const lines = Object.entries(probes).map(([profile, digest]) => `  '${profile}': '${digest}',`);
const header = `/**
 * The digests of the probe, by numeric profile. \`npm run record:arithmetic\` writes this file, on a processor that has
 * every profile.
 */
const recordedProbes: Readonly<Record<string, string>> = {`;
writeFileSync(join(packageRoot(), 'native/proof/recorded.ts'), `${[header, ...lines.sort(), '};'].join('\n')}\n`);
