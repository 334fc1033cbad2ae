/**
 * The report of `petrel status`: the records of a run combined with what is known live. It does no input or output
 * except through its ports.
 */
import { samplesResponses } from '../../core/run-kinds.ts';
import type { RunKind } from '../../core/run-kinds.ts';
import type { Presence } from '../../core/wire/messages.ts';
import { shownName } from '../../core/wire/worker-identity.ts';
import { roleOf, STAGES } from '../../core/wire/jobs/index.ts';
import type { Stage } from '../../core/wire/jobs/index.ts';
import type { RunWarning } from '../../core/run-warnings.ts';
import type { Role } from '../../core/roles.ts';
import type { FoundRun } from '../stores/find.ts';
import type { Driven, LiveSource } from '../live-source.ts';
import { summaryAndHead } from './summary.ts';
import { endedStates } from '../../core/run-states.ts';
import type { RunSummary } from './summary.ts';
import { runWarnings } from './warnings.ts';

/** A worker process, as shown to users. */
export type WorkerStatus = Omit<Presence, 'v' | 'incarnation' | 'profiles'>;

export interface RunStatus extends RunSummary {
  readonly stack: 'up' | 'down';
  /** True when another stack drives the run. */
  readonly foreign?: boolean;
  /** What the run does now; absent when it has ended or when this is unknown. */
  readonly stage?: string;
  readonly progress?: { readonly done: number; readonly total: number; readonly note: string };
  /** Why the run makes no progress. */
  readonly queued?: string;
  /** What bought instances have cost for it; absent without a fleet. */
  readonly usd?: number;
  /** Warnings about its last iterations. */
  readonly warnings: readonly RunWarning[];
  /** All workers of the stack: pools belong to the stack, not to a run. */
  readonly workers: readonly WorkerStatus[];
}

/** Names of the reader's stack and of its machine. */
export interface Here {
  readonly stack: string;
  readonly instance: string;
}

export async function runStatus(found: FoundRun, live: LiveSource, here: Here): Promise<RunStatus> {
  live.listen(found.runId);
  const [{ summary, head }, workers] = await Promise.all([summaryAndHead(found), live.workers()]);
  const warnings = await runWarnings(found.log, head);
  const stack = live.stack === undefined ? 'down' : 'up';
  const shown = workers.map((entry) => withoutOthersError(workerStatus(entry, here.instance), found.runId));
  const foreign = summary.owner !== null && summary.owner !== here.stack;
  // Only the other stack knows what it does at this moment.
  if (foreign) return { ...summary, stack, warnings, foreign, workers: [] };
  if (endedStates.has(summary.state) || summary.state === 'paused')
    return { ...summary, stack, warnings, workers: shown };
  // After a note, the workflow need not be queried. Loading Temporal's client takes half a second.
  const note = await live.note(found.runId);
  const driven: Driven = note === undefined ? await live.driven(found.runId) : { type: 'driven', stage: note.stage };
  const stage = driven.type === 'driven' ? driven.stage : undefined;
  const queued = note?.queued ?? waitsFor(summary, stack, driven, workers, stage);
  return {
    ...summary,
    stack,
    warnings,
    ...(stage === undefined ? {} : { stage }),
    ...(note === undefined || note.total === 0
      ? {}
      : { progress: { done: note.done, total: note.total, note: note.note } }),
    ...(queued === undefined ? {} : { queued }),
    workers: shown,
  };
}

/** Why nothing will happen, in words; undefined when the run is being worked on. */
export function waitsFor(
  run: Pick<RunSummary, 'runId' | 'state' | 'wish' | 'kind'>,
  stack: RunStatus['stack'],
  driven: Driven,
  workers: readonly Pick<Presence, 'roles' | 'state' | 'lease'>[],
  stage: string | undefined,
): string | undefined {
  if (run.state === 'paused') return undefined;
  if (stack === 'down') return 'the local stack is down: petrel up';
  if (driven.type === 'nobody')
    return `no workflow drives it: petrel ${run.wish === 'run' ? 'resume' : run.wish} ${run.runId}`;
  if (driven.type === 'driven' && driven.failing !== undefined) return `the control process: ${driven.failing}`;
  const role = roleFor(stage, run.kind);
  if (role === undefined) return undefined;
  const able = workers.filter(({ roles }) => roles.includes(role));
  if (able.length === 0) return `no worker with role ${role}`;
  if (able.every(({ state }) => state === 'unhealthy')) return `all workers with role ${role} are unhealthy`;
  if (able.every(({ state }) => state === 'starting')) return `the workers with role ${role} are starting`;
  if (able.every(({ state }) => state === 'draining')) return `the workers with role ${role} are leaving`;
  const leases = able.map(({ lease }) => lease).filter((lease) => lease !== undefined && lease !== run.runId);
  return role === 'trainer' && leases.length === able.length
    ? `the trainer is busy with ${leases.join(', ')}`
    : undefined;
}

/** `evaluate` samples first, or compares given responses. Stages without a worker have no role. */
function roleFor(stage: string | undefined, kind: RunKind): Role | undefined {
  if (stage === 'evaluate') return samplesResponses(kind) ? 'rollout' : 'trainer';
  return stage !== undefined && (STAGES as readonly string[]).includes(stage) ? roleOf(stage as Stage) : undefined;
}

/** A failed job of another run says nothing about this run. */
function withoutOthersError({ lastError, lastErrorRun, ...worker }: WorkerStatus, runId: string): WorkerStatus {
  if (lastError === undefined) return worker;
  return lastErrorRun === undefined || lastErrorRun === runId ? { ...worker, lastError } : worker;
}

/** `here`: the instance of this machine. Workers of other machines have its name before their own. */
export function workerStatus(entry: Presence, here: string): WorkerStatus {
  const { v: _v, incarnation: _incarnation, profiles: _profiles, ...shown } = entry;
  return { ...shown, worker: shownName(entry, here) };
}
