/**
 * `npm run test:fleet -- --seeds N [--from K]`: kills of the control process while it buys and gives back (seed.ts).
 */
import { parseArgs } from 'node:util';
import { FleetBed } from './bed.ts';
import { fleetPlan, fleetTitle, runFleetSeed } from './seed.ts';

const usage = 'usage: npm run test:fleet -- --seeds N [--from K]';

async function main(args: readonly string[]): Promise<number> {
  const text = { type: 'string' } as const;
  const { values } = parseArgs({ args: [...args], options: { seeds: text, from: text } });
  const [seeds, from] = [whole('seeds', values.seeds ?? '10'), whole('from', values.from ?? '1')];
  let [passed, failed] = [0, 0];
  let bed = new FleetBed();
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.once(signal, () => void bed.remove().finally(() => process.exit(130)));
  for (let seed = from; seed < from + seeds; seed++) {
    const began = performance.now();
    try {
      await runFleetSeed(bed, fleetPlan(seed));
      passed += 1;
      console.log(`ok ${((performance.now() - began) / 1_000).toFixed(1)} s  ${fleetTitle(fleetPlan(seed))}`);
    } catch (error) {
      failed += 1;
      console.log(`FAILED  ${error instanceof Error ? error.message : String(error)}`);
      await bed.remove();
      bed = new FleetBed();
    }
  }
  await bed.remove();
  console.log(`\n${passed} passed, ${failed} failed`);
  return failed === 0 ? 0 : 1;
}

function whole(name: string, value: string): number {
  if (!/^[1-9]\d*$/.test(value)) throw new Error(`--${name} is a whole number from 1 on, got ${value}\n${usage}`);
  return Number(value);
}

main(process.argv.slice(2)).then(
  (code) => process.exit(code),
  (error: unknown) => {
    console.error(error instanceof Error ? error.message : error);
    process.exit(2);
  },
);
