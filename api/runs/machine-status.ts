/** The stack of this machine, its workers, and the runs that are not finished. */
import { instanceName } from '../../infra/stack/identity.ts';
import { leftMachines } from '../../infra/stack/index.ts';
import type { ChildState, LeftMachine } from '../../infra/stack/index.ts';
import { livingFleet } from '../fleet/view.ts';
import type { LivingFleet } from '../fleet/view.ts';
import { listRunIds, openKnownStores, openRun } from '../stores/find.ts';
import type { LiveSource } from '../live-source.ts';
import { workerStatus } from './status-report.ts';
import type { WorkerStatus } from './status-report.ts';
import { runSummary } from './summary.ts';
import { endedStates } from '../../core/run-states.ts';
import type { RunSummary } from './summary.ts';

export interface MachineStatus {
  readonly stack: {
    readonly state: 'up' | 'degraded' | 'down';
    readonly temporal?: string;
    readonly nats?: string;
    /** Why machines cannot join at the address of `petrel up --listen`; absent: they can, or there is none. */
    readonly away?: string;
    readonly children: readonly Pick<ChildState, 'name' | 'state' | 'pid' | 'restarts' | 'lastExit'>[];
  };
  readonly workers: readonly WorkerStatus[];
  /** Bought instances; absent without a fleet. */
  readonly fleet?: LivingFleet;
  /** Machines that were refused or left with a reason in the last day, newest first. */
  readonly left: readonly LeftMachine[];
  /** Queued, running and paused ones, newest first. */
  readonly runs: readonly RunSummary[];
}

export async function machineStatus(
  home: string,
  live: LiveSource,
  notice: (text: string) => void,
): Promise<MachineStatus> {
  const [workers, runs] = await Promise.all([live.workers(), unfinishedRuns(home, notice)]);
  const fleet = await livingFleet({ home }, workers);
  const machine = {
    stack: stackPart(live),
    workers: workers.map((entry) => workerStatus(entry, instanceName(home))),
    left: leftMachines(home),
    runs,
  };
  return { ...machine, ...(fleet && { fleet }) };
}

async function unfinishedRuns(home: string, notice: (text: string) => void): Promise<RunSummary[]> {
  const unfinished: RunSummary[] = [];
  for (const listed of await listRunIds(await openKnownStores(home, notice))) {
    const found = await openRun(listed);
    const state = found && ((await found.log.status.newest())?.state ?? 'queued');
    if (found !== undefined && state !== undefined && !endedStates.has(state)) unfinished.push(await runSummary(found));
  }
  return unfinished;
}

function stackPart({ stack }: LiveSource): MachineStatus['stack'] {
  if (stack === undefined) return { state: 'down', children: [] };
  const children = stack.children.map(({ name, state, pid, restarts, lastExit }) => ({
    name,
    state,
    ...(pid === undefined ? {} : { pid }),
    restarts,
    ...(lastExit === undefined ? {} : { lastExit }),
  }));
  const state = children.every((child) => child.state === 'ready') ? 'up' : 'degraded';
  const { away } = stack;
  return {
    state,
    temporal: stack.temporal.address,
    nats: stack.nats.url,
    ...(away !== undefined && { away }),
    children,
  };
}
