/** A run's state in its log, with the reason of a pause or a failure. */
import { isDamage } from '../../core/records/damage.ts';
import { PauseError, RetryableError } from '../../core/errors.ts';
import { endedStates } from '../../core/run-states.ts';
import type { DesiredState, RunState } from '../../core/run-states.ts';
import type { RunLog } from '../../log/run/run-log.ts';
import { drivenBy } from './ownership.ts';
import type { ActivityPorts } from '../ports/index.ts';
import type { Recompute } from './recompute.ts';
import type { RunContexts, RunRef } from './run-context.ts';

export type StateToRecord = RunRef & {
  readonly state: 'running' | 'paused' | 'stopped' | 'completed' | 'failed' | 'cancelled';
  readonly reason?: unknown;
};

export interface StateServices {
  readonly ports: ActivityPorts;
  readonly contexts: RunContexts;
  readonly recompute: Recompute;
}

/**
 * Records the run's state, and the reason of a pause or a failure. When another stack drives the run now, only that
 * stack records its state, and a failure here is only logged. Resolves with the desired state after the record.
 */
export async function recordState(
  { ports, contexts, recompute }: StateServices,
  input: StateToRecord,
): Promise<DesiredState | undefined> {
  const givenUp = ports.beginAttempt();
  const log = await contexts.log(input);
  const term = (await newestIfReadable(log))?.record;
  if (term !== undefined && term.owner !== ports.stack) {
    ports.say(input.runId, 'warn', `${ports.stack} stops driving this run${reasonText(input.reason)}`);
    await ports.dispatcher.cancelJobs(input.runId);
    if (input.state === 'failed') return undefined;
    throw drivenBy(term, ports.stack);
  }
  if (term === undefined) await log.ensureThere();
  // A pause without a reason comes from the user. A later resume by the user is newer and stays.
  const needsPerson = input.state === 'paused' && input.reason !== undefined;
  const { wish } = await whenThereIsRoom(() =>
    ports.appendStatus(
      log,
      {
        state: input.state,
        needsPerson,
        ...endsAsDesired(input.state),
        ...(input.reason === undefined ? {} : { reason: input.reason }),
      },
      ports.now(),
      givenUp,
    ),
  );
  ports.say(input.runId, input.reason === undefined ? 'info' : 'warn', `${input.state}${reasonText(input.reason)}`);
  if (endedStates.has(input.state)) ports.events.end(input.runId);
  if (input.state === 'running') recompute.resetFailures(input.runId);
  else if (input.state === 'cancelled' || input.state === 'failed') await ports.dispatcher.cancelJobs(input.runId);
  else ports.dispatcher.releaseLease(input.runId);
  return wish;
}

/**
 * A run is stopped or cancelled only while the user wants that. Otherwise the workflow reads the desired state again.
 */
function endsAsDesired(state: RunState): { readonly onlyIf?: DesiredState } {
  if (state === 'stopped') return { onlyIf: 'stop' };
  return state === 'cancelled' ? { onlyIf: 'cancel' } : {};
}

/** A full disk: Temporal retries until the state can be written. */
async function whenThereIsRoom<T>(write: () => Promise<T>): Promise<T> {
  try {
    return await write();
  } catch (error) {
    if (error instanceof PauseError && error.code === 'DiskFull')
      throw new RetryableError(error.code, error.message, { cause: error });
    throw error;
  }
}

/** A pause must be recorded even when the term's record is the damaged one. */
async function newestIfReadable(log: RunLog): Promise<Awaited<ReturnType<RunLog['newestTerm']>>> {
  try {
    return await log.newestTerm();
  } catch (error) {
    if (isDamage(error)) return undefined;
    throw error;
  }
}

function reasonText(reason: unknown): string {
  return typeof reason === 'object' && reason !== null && 'message' in reason ? `: ${String(reason.message)}` : '';
}
