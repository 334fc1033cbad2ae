/**
 * `npm run test:recovery -- --seeds N [--from K] [--fault <name>] [--subject <name>] [--alone] [--machines [--wan]]
 * [--engine <torch | torch,hf | torch,vllm>] [--store <folder or s3://…>] [--json]` `--subject`: the run that is
 * disturbed (subjects.ts); default: grpo. `--machines`: faults of machines that have joined, and of the control machine
 * (machine-plan.ts), one per run; with `--wan` they are behind a long link. `--engine`: runs on engines that are
 * installed, and faults of their processes, too (engine-pairs.ts). `--alone`: one fault per run, each fault in turn,
 * and the cost of each compared with an undisturbed run.
 */
import { parseArgs } from 'node:util';
import type { LongLink } from '../cut-proxy.ts';
import { Bed } from './bed.ts';
import { playMachines } from './machine-play.ts';
import { allFaults } from './pairs.ts';
import { engineChoice, requireInstalled } from './engine-choice.ts';
import type { EngineChoice } from './engine-choice.ts';
import type { FaultName, Layout } from './pairs.ts';
import { planTitle, plansAlone, plansOf, plansOnEngine, seedsPerCycle } from './plan.ts';
import { faultRows, renderRows, renderSeeds } from './report.ts';
import { subjectNames, subjects } from './subjects.ts';
import type { Subject } from './subjects.ts';
import { runSeed, undisturbedSeconds } from './seed.ts';
import type { SeedResult } from './seed.ts';

const usage =
  'usage: npm run test:recovery -- --seeds N [--from K] [--fault <name>] [--subject <name>] [--alone] [--machines [--wan]] [--engine <torch | torch,hf | torch,vllm>] [--store <folder or s3://…>] [--json]';

/** 80 ms there and back; one piece in a hundred is lost once. */
const longLink: LongLink = { delayMs: 40, loss: 0.01 };

async function main(args: readonly string[]): Promise<number> {
  const { seeds, from, fault, subject, alone, machines, wan, store, json, engine } = options(args);
  if (machines) return playMachines(from, seeds, store, wan ? longLink : undefined);
  const say = json ? console.error : console.log;
  const results: SeedResult[] = [];
  let failed = 0;
  if (engine !== undefined) requireInstalled(engine);
  let bed = new Bed(store, engine);
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.once(signal, () => void bed.remove().finally(() => process.exit(130)));
  const undisturbed = new Map<Layout, number>();
  const plans =
    engine === undefined
      ? (alone ? plansAlone : plansOf)(from, seeds, fault, subject)
      : plansOnEngine(engine, from, seeds, fault);
  for (const plan of plans) {
    try {
      if (alone && !undisturbed.has(plan.layout))
        undisturbed.set(plan.layout, await undisturbedSeconds(bed, plan.layout, subject));
      const result = await runSeed(bed, plan);
      results.push(result);
      say(`ok ${result.seconds.toFixed(1)} s  ${planTitle(plan)}`);
    } catch (error) {
      failed++;
      say(`FAILED  ${error instanceof Error ? error.message : String(error)}`);
      await bed.remove();
      bed = new Bed(store, engine);
    }
  }
  await bed.remove();
  const rows = faultRows(results, undisturbed);
  console.log(json ? JSON.stringify(rows) : `\n${renderRows(rows)}\n\n${renderSeeds(results)}`);
  (json ? console.error : console.log)(`\n${results.length} passed, ${failed} failed`);
  return failed === 0 ? 0 : 1;
}

function options(args: readonly string[]): {
  seeds: number;
  from: number;
  fault: FaultName | undefined;
  subject: Subject;
  alone: boolean;
  machines: boolean;
  wan: boolean;
  store: string | undefined;
  json: boolean;
  engine: EngineChoice | undefined;
} {
  const text = { type: 'string' } as const;
  const { values } = parseArgs({
    args: [...args],
    options: {
      seeds: text,
      from: text,
      fault: text,
      subject: text,
      store: text,
      engine: text,
      alone: { type: 'boolean' },
      machines: { type: 'boolean' },
      wan: { type: 'boolean' },
      json: { type: 'boolean' },
    },
  });
  const whole = (name: string, value: string): number => {
    if (!/^[1-9]\d*$/.test(value)) throw new Error(`--${name} is a whole number from 1 on, got ${value}\n${usage}`);
    return Number(value);
  };
  if (values.fault !== undefined && !(values.fault in allFaults))
    throw new Error(`--fault is one of: ${Object.keys(allFaults).join(', ')}; got ${values.fault}`);
  const without = (['fault', 'subject', 'alone', 'json', 'engine'] as const).filter(
    (name) => values[name] !== undefined,
  );
  if (values.machines === true && without.length > 0)
    throw new Error(
      `--machines goes with --seeds, --from, --store and --wan only, got --${without.join(', --')}\n${usage}`,
    );
  if (values.wan === true && values.machines !== true) throw new Error(`--wan goes with --machines\n${usage}`);
  if (values.engine !== undefined && (values.subject !== undefined || values.alone === true))
    throw new Error(`--engine goes without --subject and --alone\n${usage}`);
  const { subject = 'grpo' } = values;
  if (!isSubject(subject)) throw new Error(`--subject is one of: ${subjectNames.join(', ')}; got ${subject}`);
  return {
    subject,
    seeds: whole('seeds', values.seeds ?? String(seedsPerCycle())),
    from: whole('from', values.from ?? '1'),
    fault: values.fault as FaultName | undefined,
    alone: values.alone ?? false,
    machines: values.machines ?? false,
    wan: values.wan ?? false,
    store: values.store,
    json: values.json ?? false,
    engine: values.engine === undefined ? undefined : engineChoice(values.engine),
  };
}

const isSubject = (name: string): name is Subject => Object.hasOwn(subjects, name);

main(process.argv.slice(2)).then(
  (code) => process.exit(code),
  (error: unknown) => {
    console.error(error instanceof Error ? error.message : error);
    process.exit(2);
  },
);
