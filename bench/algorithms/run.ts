/** One run of a recipe on the stack of a home, as `petrel run` starts it, and how long it took. */
import { join } from 'node:path';
import { openStack } from '../../api/index.ts';
import type { Stack } from '../../api/index.ts';
import { errorToJson } from '../../core/errors.ts';
import { openStore } from '../../infra/store/open.ts';
import { defaultStore } from '../../infra/store/places.ts';
import { RunLog } from '../../log/run/run-log.ts';
import { observe } from './observed.ts';
import type { Observed } from './observed.ts';
import { processorSeconds } from './processor-seconds.ts';

/** A run that takes so much longer than its limit is stuck. */
const patienceMs = 10 * 60 * 1000;

export interface TimedRun {
  readonly observed: Observed;
  /** Seconds from the request to the last validation and the final checkpoint. */
  readonly seconds: number;
  /**
   * Processor seconds of all processes of the stack in this time. On a machine with other work it says more than
   * `seconds`.
   */
  readonly processorSeconds: number;
}

/** Throws when the run is refused, or ends in any other way than completed. */
export async function timedRun(
  home: string,
  file: string,
  seed: number,
  overrides: readonly string[] = [],
): Promise<TimedRun> {
  const stack = openStack({ home, env: process.env });
  const startedAt = performance.now();
  const busyBefore = processorSeconds(home);
  const { id: runId } = await completedRun(stack, file, seed, overrides);
  const seconds = (performance.now() - startedAt) / 1000;
  const busy = processorSeconds(home) - busyBefore;
  const log = new RunLog(await openStore(defaultStore(home)), runId);
  return { observed: await observe(log), seconds: hundredths(seconds), processorSeconds: hundredths(busy) };
}

/** Trains a recipe with seed 1 and exports its model. Returns the folder. */
export async function exportedModel(home: string, { name, file }: { readonly name: string; readonly file: string }) {
  const run = await completedRun(openStack({ home, env: process.env }), file, 1, []);
  const { folder } = await run.export({ folder: join(home, 'exported', name) });
  return folder;
}

async function completedRun(stack: Stack, file: string, seed: number, overrides: readonly string[]) {
  const run = await stack.start({ recipe: file, overrides: [`seed=${seed}`, ...overrides] });
  const state = await run.follow(() => {}, AbortSignal.timeout(patienceMs));
  if (state === 'completed') return run;
  const { reason } = await run.outcome();
  // The next run would wait for the trainer of this one.
  await run.request('cancel').catch(() => {});
  throw new Error(`the run is ${state}: ${reason?.message ?? 'no reason given'}`);
}

const hundredths = (value: number): number => Number(value.toFixed(2));

/** The text of an error for the table. */
export const reasonOf = (error: unknown): string => errorToJson(error).message;
