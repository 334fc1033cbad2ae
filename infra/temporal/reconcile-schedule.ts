/**
 * Reconciles Temporal with a schedule's records: the Schedule, and a workflow for every time without an outcome. Every
 * command that uses schedules repeats this, so a lost Temporal database loses no time.
 */
import type { Client } from '@temporalio/client';
import { missingBackfill, mostBackfilled } from '../../core/schedules/decide.ts';
import type { FiringRecord, ScheduleRecord } from '../../core/records/schema.ts';
import { firingWorkflow, taskQueue } from '../../core/wire/workflow.ts';
import type { FiringCarry } from '../../core/wire/workflow.ts';
import { sha256 } from '../../log/objects/digest.ts';
import type { ScheduleLog } from '../../log/schedules/schedule-log.ts';
import { actionWorkflowId, ensureSchedule, removeSchedule } from './schedules.ts';
import type { Ensured, WantedSchedule } from './schedules.ts';

export interface ReconcilePorts {
  readonly client: Client;
  /** Name of this stack. */
  readonly stack: string;
}

/** Waiting times of a backfill that get a workflow at once; the next reconciliation adds more. */
const inLine = 2;

/** `others`: another stack fires this schedule, so it is not in this stack's Temporal. */
export type Reconciled = Ensured | 'removed' | 'others';

export async function reconcileSchedule(
  { client, stack }: ReconcilePorts,
  log: ScheduleLog,
  now: Date,
): Promise<Reconciled> {
  const record = await log.record();
  if (record === undefined || record.state === 'removed' || record.owner !== stack) {
    await removeSchedule(client, temporalScheduleId(log));
    if (record !== undefined && record.owner !== stack) return 'others';
  }
  const ensured =
    record === undefined || record.state === 'removed'
      ? 'removed'
      : await ensureSchedule(client, wantedSchedule(log, record), { from: new Date(record.at), now });
  if (record !== undefined) for (const firing of await unsettled(log, record)) await startFiring(client, log, firing);
  return ensured;
}

/** One id per store and name, because a Temporal namespace may serve several stores. */
export function temporalScheduleId({ store, name }: Pick<ScheduleLog, 'store' | 'name'>): string {
  return `schedule-${name}-${sha256(new TextEncoder().encode(store.url)).slice(0, 8)}`;
}

function wantedSchedule(
  log: Pick<ScheduleLog, 'store' | 'name'>,
  { definition, generation, state, note }: ScheduleRecord,
): WantedSchedule {
  const { times, jitterMs, until, catchUpMs } = definition;
  return {
    id: temporalScheduleId(log),
    times,
    ...(jitterMs === undefined ? {} : { jitterMs }),
    ...(until === undefined ? {} : { until: new Date(until) }),
    catchUpMs,
    // Temporal permits overlaps; the workflow applies the policy itself, because it must take resumed runs into account
    overlap: 'all',
    paused: state === 'paused',
    ...(note === undefined ? {} : { note }),
    action: { workflow: firingWorkflow, workflowId: firingId(log, generation), args: [carryOf(log, generation)] },
  };
}

/** Starts the workflow of one time, or joins the running one, also one that the Temporal Schedule has started. */
export async function startFiring(
  client: Client,
  log: ScheduleLog,
  { generation, time, triggered }: { readonly generation: number; readonly time: string; readonly triggered: boolean },
): Promise<void> {
  await client.workflow.start(firingWorkflow, {
    workflowId: actionWorkflowId(firingId(log, generation), new Date(time)),
    taskQueue,
    args: [{ ...carryOf(log, generation), time, triggered }],
    workflowTaskTimeout: '2 s',
    workflowIdReusePolicy: 'ALLOW_DUPLICATE',
    workflowIdConflictPolicy: 'USE_EXISTING',
  });
}

/**
 * Times that wait, that should have started a run which is missing, or that belong to a backfill and are not due yet.
 */
async function unsettled(
  log: ScheduleLog,
  record: ScheduleRecord,
): Promise<{ generation: number; time: string; triggered: boolean }[]> {
  const firings = await log.firings();
  const starting = await log.starting(firings.flatMap(({ runId }) => runId ?? []));
  const waiting = firings.filter(({ outcome, kind }) => outcome === 'waiting' && kind === 'backfill').length;
  const room = record.definition.overlap === 'all' ? mostBackfilled : Math.max(0, inLine - waiting);
  const isOpen = ({ outcome, runId }: FiringRecord) =>
    outcome === 'waiting' || (runId !== undefined && starting.has(runId));
  return [
    ...firings
      .filter(isOpen)
      .map(({ generation, time, kind }) => ({ generation, time, triggered: kind === 'triggered' })),
    ...missingBackfill(record, firings)
      .slice(0, room)
      .map((time) => ({ generation: record.generation, time, triggered: false })),
  ];
}

function firingId(log: Pick<ScheduleLog, 'store' | 'name'>, generation: number): string {
  return `${temporalScheduleId(log)}-g${generation}`;
}

function carryOf({ store, name }: Pick<ScheduleLog, 'store' | 'name'>, generation: number): FiringCarry {
  return { schedule: name, store: store.url, generation };
}
