/** Many seeds of faults of machines, and a table of how soon the runs went on. */
import { median } from '../../bench/clock.ts';
import type { LongLink } from '../cut-proxy.ts';
import { MachineBed } from './machine-bed.ts';
import { MachineBeds } from './machine-beds.ts';
import { boundS, machineFaults, machinePlan, machineTitle } from './machine-plan.ts';
import type { MachinePlan } from './machine-plan.ts';
import type { MachineResult } from './machine-seed.ts';

/** Returns the exit code. `store`, `link`: as of MachineBed. After a failed seed, the next one gets a new stack. */
export async function playMachines(from: number, count: number, store?: string, link?: LongLink): Promise<number> {
  const results: MachineResult[] = [];
  let failed = 0;
  const beds = new MachineBeds(() => new MachineBed(store, link));
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.once(signal, () => void beds.remove().finally(() => process.exit(130)));
  for (let seed = from; seed < from + count; seed++) {
    const plan = machinePlan(seed);
    try {
      const result = await beds.play(plan);
      const { seconds, elsewhereAfterS, decidedAfterS } = result;
      refuseLate(plan, elsewhereAfterS);
      results.push(result);
      const times = [elsewhereAfterS, decidedAfterS].map((s) => s?.toFixed(2) ?? '–').join(', ');
      console.log(`ok ${seconds.toFixed(1)} s  ${machineTitle(plan)} (elsewhere, decided after s: ${times})`);
    } catch (error) {
      failed++;
      console.log(`FAILED  ${error instanceof Error ? error.message : String(error)}`);
    }
  }
  await beds.remove();
  console.log(`\n${table(results)}\n\n${results.length} passed, ${failed} failed`);
  return failed === 0 ? 0 : 1;
}

/** Only this program compares with bounds: tests run beside other work, which can take any time. */
function refuseLate(plan: MachinePlan, elsewhereAfterS = 0): void {
  const bound = boundS(plan);
  if (bound !== undefined && elsewhereAfterS > bound)
    throw new Error(
      `${machineTitle(plan)}: the job began elsewhere after ${elsewhereAfterS} s, expected at most ${bound} s`,
    );
}

function table(results: readonly MachineResult[]): string {
  const lines = machineFaults.flatMap((fault) => {
    const of = results.filter(({ plan }) => plan.fault === fault);
    if (of.length === 0) return [];
    const elsewhere = of.flatMap(({ elsewhereAfterS }) => elsewhereAfterS ?? []);
    const decided = of.map(({ decidedAfterS }) => decidedAfterS);
    const stages = [...new Set(of.map(({ plan }) => `${plan.place.stage} (${plan.place.point})`))].sort().join(', ');
    const cells = [
      fault,
      of.length,
      stages,
      spread(elsewhere),
      spread(decided),
      spread(of.map(({ seconds }) => seconds)),
    ];
    return [`| ${cells.join(' | ')} |`];
  });
  return [
    '| fault | times | at | job began elsewhere after, s: median (longest) | next decision after, s | run, s |',
    '| --- | --- | --- | --- | --- | --- |',
    ...lines,
  ].join('\n');
}

const spread = (values: readonly number[]): string =>
  values.length === 0 ? '–' : `${median(values).toFixed(1)} (${Math.max(...values).toFixed(1)})`;
