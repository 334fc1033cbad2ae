/** A run of a recipe on the stack of a home, to its end. */
import { openStack } from '../../api/index.ts';
import type { Run } from '../../api/index.ts';
import { openStore } from '../../infra/store/open.ts';
import { defaultStore } from '../../infra/store/places.ts';
import { RunLog } from '../../log/run/run-log.ts';

/** A run that takes longer is stuck. */
const patienceMs = 20 * 60 * 1000;

export interface CompletedRun {
  readonly run: Run;
  readonly log: RunLog;
}

/** Throws when the run is refused, or ends in any other way than completed. */
export async function completedRun(home: string, recipe: string, overrides: readonly string[]): Promise<CompletedRun> {
  const run = await openStack({ home, env: process.env }).start({ recipe, overrides: [...overrides] });
  const state = await run.follow(() => {}, AbortSignal.timeout(patienceMs));
  if (state === 'completed') return { run, log: new RunLog(await openStore(defaultStore(home)), run.id) };
  const { reason } = await run.outcome();
  // The next run would wait for the trainer of this one.
  await run.request('cancel').catch(() => {});
  throw new Error(`the run is ${state}: ${reason?.message ?? 'no reason given'}`);
}
