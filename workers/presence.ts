/** What a worker tells others of itself. */
import { hostname } from 'node:os';
import type { MachineFacts } from '../core/machine-needs.ts';
import { wireVersion } from '../core/wire/messages.ts';
import type { Presence } from '../core/wire/messages.ts';
import type { WorkerIdentity } from '../core/wire/worker-identity.ts';
import type { Engine } from './engine/process/client.ts';
import type { Health } from './health.ts';
import type { JobRunner } from './job-runner.ts';
import type { TrainerLease } from './lease.ts';
import type { WorkerRoles } from './options.ts';
import type { RewardRole } from './reward/score.ts';

/** The parts of a worker that others see something of. */
export interface SeenWorker {
  readonly identity: WorkerIdentity;
  readonly options: WorkerRoles;
  readonly since: string;
  readonly state: Presence['state'];
  /** The cloud expects to take the machine back. */
  readonly isAtRisk: boolean;
  readonly engine: Engine | undefined;
  /** The queues whose jobs the worker takes. */
  readonly profiles: readonly string[];
  readonly machine: MachineFacts | undefined;
  readonly loopDelayMs: number;
  readonly lease: Pick<TrainerLease, 'runId' | 'components' | 'standsBy' | 'isWanted'>;
  readonly reward: Pick<RewardRole, 'ahead'>;
  readonly jobs: Pick<JobRunner, 'jobs' | 'tokensPerSecond'>;
  readonly health: Pick<Health, 'shown' | 'takesJobs'>;
}

export function presenceOf(worker: SeenWorker): Presence {
  const { identity, options, engine, jobs, health, since } = worker;
  const { tokensPerSecond } = jobs;
  const ahead = worker.reward.ahead.jobs;
  return {
    v: wireVersion,
    ...identity,
    ...(options.predecessorEnded === undefined ? {} : { predecessorEnded: options.predecessorEnded }),
    pid: process.pid,
    host: hostname(),
    roles: [...options.roles],
    state: shownState(worker),
    engines: [...(engine?.facts ?? [])],
    threads: options.threads,
    profiles: [...worker.profiles],
    ...(worker.machine && machineShown(worker.machine)),
    ...(engine?.serves === undefined ? {} : { serves: engine.serves }),
    ...leaseShown(worker.lease),
    ...(worker.isAtRisk && { atRisk: true as const }),
    jobs: [...jobs.jobs],
    ...(ahead.length > 0 && { ahead: [...ahead] }),
    ...(tokensPerSecond !== undefined && { tokensPerSecond: Math.round(tokensPerSecond * 10) / 10 }),
    loopDelayMs: worker.loopDelayMs,
    ...health.shown,
    since,
  };
}

function shownState({ state, health, jobs }: SeenWorker): Presence['state'] {
  if (state !== 'ready') return state;
  if (!health.takesJobs) return 'unhealthy';
  return jobs.jobs.size > 0 ? 'busy' : 'ready';
}

const machineShown = ({ pool, gpus, roundTripMs }: MachineFacts): Partial<Presence> => ({
  pool,
  gpus: [...gpus],
  ...(roundTripMs !== undefined && { roundTripMs }),
});

function leaseShown({ runId, components, standsBy, isWanted }: SeenWorker['lease']): Partial<Presence> {
  return {
    ...(runId === undefined ? {} : { lease: runId }),
    ...(components === undefined ? {} : { trains: [...components] }),
    ...(isWanted && { wanted: isWanted }),
    ...(standsBy && { standsBy }),
  };
}
