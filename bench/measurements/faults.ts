/**
 * What a fault costs: `npm run test:recovery -- --alone` kills and wipes in runs of a tiny model, one fault per run.
 * `back`: time until the run's next commit. `longer`: how much longer the run took than an undisturbed one.
 */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { z } from 'zod';
import { builtFile } from '../../infra/home.ts';
import type { BenchSettings, Measurement, Session, Values } from '../measurement.ts';

/** Names of the faults in the recovery suite. */
export const faultNames = [
  'trainer',
  'rollout worker',
  'reward worker',
  'scorer',
  'control',
  'nats',
  'nats wiped',
  'nats older copy',
  'temporal',
  'temporal older database',
  'supervisor',
  'worker + supervisor',
  'worker + nats',
  'worker + control',
  'worker + temporal',
  'control + temporal',
  'control + supervisor',
  'everything',
] as const;

/** Runs with the fault, at points of the code that their seeds choose. */
const runs = 3;

export function faultCost(fault: (typeof faultNames)[number]): Measurement {
  const name = `fault.${fault.replaceAll(' + ', '+').replaceAll(' ', '-')}`;
  return {
    name,
    rows: [
      { name: `${name}.back`, unit: 's' },
      { name: `${name}.longer`, unit: 's' },
    ],
    turns: 1,
    open: ({ quick }: BenchSettings) => Promise.resolve(session(name, fault, quick ? 1 : runs)),
  };
}

const spread = z.object({ median: z.number() });
const tableOfOne = z.tuple([z.object({ committedAfterS: spread, lostS: spread })]);

function session(name: string, fault: string, seeds: number): Session {
  return {
    about: `${seeds} runs of a tiny model`,
    async turn(): Promise<Values> {
      const { stdout } = await promisify(execFile)(process.execPath, [
        builtFile('tests/recovery/main.js'),
        '--alone',
        '--json',
        '--fault',
        fault,
        '--seeds',
        String(seeds),
      ]);
      const [{ committedAfterS, lostS }] = tableOfOne.parse(JSON.parse(stdout));
      return { [`${name}.back`]: committedAfterS.median, [`${name}.longer`]: lostS.median };
    },
    close: () => Promise.resolve(),
  };
}
