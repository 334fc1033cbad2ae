/** `npm run test:recovery -- --seeds N [--from K] [--fault <name>] [--store <folder or s3://…>] [--json]` */
import { parseArgs } from 'node:util';
import { Bed } from './bed.ts';
import { faults } from './pairs.ts';
import type { FaultName } from './pairs.ts';
import { planTitle, plansOf, seedsPerCycle } from './plan.ts';
import { faultRows, renderRows } from './report.ts';
import { runSeed } from './seed.ts';
import type { SeedResult } from './seed.ts';

const usage = 'usage: npm run test:recovery -- --seeds N [--from K] [--fault <name>] [--store <folder or s3://…>] [--json]';

async function main(args: readonly string[]): Promise<number> {
  const { seeds, from, fault, store, json } = options(args);
  const say = json ? console.error : console.log;
  const results: SeedResult[] = [];
  let failed = 0;
  let bed = new Bed(store);
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void bed.remove().finally(() => process.exit(130)));
  for (const plan of plansOf(from, seeds, fault)) {
    try {
      const result = await runSeed(bed, plan);
      results.push(result);
      say(`ok ${result.seconds.toFixed(1)} s  ${planTitle(plan)}`);
    } catch (error) {
      failed++;
      say(`FAILED  ${error instanceof Error ? error.message : String(error)}`);
      await bed.remove();
      bed = new Bed(store);
    }
  }
  await bed.remove();
  if (json) console.log(JSON.stringify(faultRows(results)));
  else console.log(`\n${renderRows(faultRows(results))}`);
  (json ? console.error : console.log)(`\n${results.length} passed, ${failed} failed`);
  return failed === 0 ? 0 : 1;
}

function options(args: readonly string[]): { seeds: number; from: number; fault: FaultName | undefined; store: string | undefined; json: boolean } {
  const text = { type: 'string' } as const;
  const { values } = parseArgs({ args: [...args], options: { seeds: text, from: text, fault: text, store: text, json: { type: 'boolean' } } });
  const whole = (name: string, value: string): number => {
    if (!/^[1-9]\d*$/.test(value)) throw new Error(`--${name} is a whole number from 1 on, got ${value}\n${usage}`);
    return Number(value);
  };
  if (values.fault !== undefined && !(values.fault in faults)) throw new Error(`--fault is one of: ${Object.keys(faults).join(', ')}; got ${values.fault}`);
  return {
    seeds: whole('seeds', values.seeds ?? String(seedsPerCycle())),
    from: whole('from', values.from ?? '1'),
    fault: values.fault as FaultName | undefined,
    store: values.store,
    json: values.json ?? false,
  };
}

main(process.argv.slice(2)).then(
  (code) => process.exit(code),
  (error: unknown) => {
    console.error(error instanceof Error ? error.message : error);
    process.exit(2);
  },
);
