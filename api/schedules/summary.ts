/** Sums up a schedule from the store, with what Temporal adds when the stack is up. */
import type { RunKind } from '../../core/run-kinds.ts';
import type { FiringRecord, ScheduleRecord } from '../../core/records/schema.ts';
import { missingBackfill } from '../../core/schedules/decide.ts';
import { timesAfter } from '../../core/schedules/times.ts';
import type { ValidationMeasure } from '../../core/validation-measure.ts';
import type { ScheduledRunState } from '../../log/schedules/schedule-log.ts';
import type { LiveSchedule } from '../../infra/temporal/schedules.ts';
import { openRun } from '../stores/find.ts';
import { runSummary } from '../runs/summary.ts';
import { endedStates } from '../../core/run-states.ts';
import type { FoundSchedule } from './find.ts';

/** A time and what became of it. */
export interface FiringSummary {
  readonly time: string;
  readonly kind: FiringRecord['kind'];
  readonly outcome: FiringRecord['outcome'];
  readonly why?: string;
  /** Runs that made it wait or be skipped. */
  readonly by: readonly string[];
  readonly runId: string | null;
  readonly state: ScheduledRunState | null;
  readonly accuracy: number | null;
  readonly validationMeasure: ValidationMeasure | null;
  readonly iteration: number | null;
  readonly iterations: number | null;
  /** Seconds from its creation to its last change of state, or to now. */
  readonly seconds: number | null;
}

export interface ScheduleSummary {
  readonly name: string;
  readonly state: ScheduleRecord['state'];
  readonly note?: string;
  readonly times: ScheduleRecord['definition']['times'];
  readonly overlap: ScheduleRecord['definition']['overlap'];
  readonly jitterMs: number | null;
  readonly until: string | null;
  readonly catchUpMs: number;
  readonly backfill: { readonly from: string; readonly to: string; readonly left: number } | null;
  readonly kind: RunKind;
  readonly since: string;
  readonly store: string;
  /** The stack that fires it. */
  readonly owner: string;
  /** It is this one. */
  readonly mine: boolean;
  /** Empty when it is paused or over. */
  readonly nextTimes: readonly string[];
  /** Runs that have not ended: what the overlap policy looks at. */
  readonly active: readonly { readonly runId: string; readonly state: ScheduledRunState }[];
  readonly waiting: number;
  readonly skipped: number;
  /** Times that were dropped while the stack was down, as far as Temporal remembers. */
  readonly missed: number | null;
  /** Newest first. */
  readonly firings: readonly FiringSummary[];
}

const shownTimes = 5;

export async function scheduleSummary(
  { log, record }: FoundSchedule,
  live: LiveSchedule | undefined,
  { stack, now, limit }: { readonly stack: string; readonly now: Date; readonly limit: number },
): Promise<ScheduleSummary> {
  const { firings, active } = await log.view();
  const states = await log.runStates(active);
  const { definition, state, note, owner } = record;
  const { times, overlap, catchUpMs, backfill, kind, since } = definition;
  return {
    name: log.name,
    state,
    ...(note === undefined ? {} : { note }),
    times,
    overlap,
    jitterMs: definition.jitterMs ?? null,
    until: definition.until ?? null,
    catchUpMs,
    backfill:
      backfill === undefined
        ? null
        : {
            ...backfill,
            left:
              missingBackfill(record, firings).length +
              firings.filter((one) => one.kind === 'backfill' && one.outcome === 'waiting').length,
          },
    kind,
    since,
    store: log.store.url,
    owner,
    mine: owner === stack,
    nextTimes: state === 'active' ? nextTimes(record, live, now) : [],
    active: active.map((runId) => ({ runId, state: states.get(runId) ?? 'starting' })),
    waiting: firings.filter(({ outcome }) => outcome === 'waiting').length,
    skipped: firings.filter(({ outcome }) => outcome === 'skipped').length,
    missed: live?.missed ?? null,
    firings: await Promise.all(
      [...firings]
        .sort((a, b) => b.n - a.n)
        .slice(0, limit)
        .map((firing) => firingSummary(log, firing, now)),
    ),
  };
}

function nextTimes(
  { definition: { times, until } }: ScheduleRecord,
  live: LiveSchedule | undefined,
  now: Date,
): string[] {
  const next = live?.nextTimes ?? timesAfter(times, now, shownTimes, until === undefined ? undefined : new Date(until));
  return next.slice(0, shownTimes).map((time) => time.toISOString());
}

async function firingSummary(
  { store }: FoundSchedule['log'],
  { time, kind, outcome, why, by, runId }: FiringRecord,
  now: Date,
): Promise<FiringSummary> {
  const told = { time, kind, outcome, ...(why === undefined ? {} : { why }), by: by ?? [], runId: runId ?? null };
  const run = runId === undefined ? undefined : await openRun({ runId, store });
  if (run === undefined) {
    return {
      ...told,
      state: runId === undefined ? null : 'removed',
      accuracy: null,
      validationMeasure: null,
      iteration: null,
      iterations: null,
      seconds: null,
    };
  }
  const { state, accuracy, validationMeasure, iteration, iterations, createdAt, changedAt } = await runSummary(run);
  const end = endedStates.has(state) ? Date.parse(changedAt) : now.getTime();
  return {
    ...told,
    state,
    accuracy,
    validationMeasure,
    iteration,
    iterations,
    seconds: (end - Date.parse(createdAt)) / 1000,
  };
}
