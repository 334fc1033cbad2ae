/** Schedules and their firings. FORMAT.md describes it. */
import { z } from 'zod';
import { RUN_KINDS } from '../../run-kinds.ts';
import { overlapPolicies } from '../overlap-policies.ts';
import { format } from './fields.ts';
import { runInputs } from './run.ts';

/**
 * What a schedule starts, and when. Everything is copied when the schedule is added; later changes of files have no
 * effect.
 */
const scheduleDefinition = z.object({
  /** Time at which it was added; earlier times belong to a backfill. */
  since: z.string(),
  times: z.discriminatedUnion('type', [
    z.object({ type: z.literal('every'), everyMs: z.int().positive() }),
    z.object({ type: z.literal('cron'), cron: z.string(), timezone: z.string() }),
  ]),
  overlap: z.enum(overlapPolicies),
  jitterMs: z.int().positive().optional(),
  until: z.string().optional(),
  catchUpMs: z.int().positive(),
  backfill: z.object({ from: z.string(), to: z.string() }).optional(),
  kind: z.enum(RUN_KINDS),
  /** The recipe, as in a run's revision. A user's scorer module is a blob of the schedule. */
  recipe: z.record(z.string(), z.unknown()),
  inputs: runInputs,
});

export type ScheduleDefinition = z.infer<typeof scheduleDefinition>;

/** The desired state of a schedule. The newest entry of a dense sequence is valid. */
export const scheduleRecord = z.object({
  format,
  schedule: z.string(),
  n: z.int().positive(),
  at: z.string(),
  state: z.enum(['active', 'paused', 'removed']),
  note: z.string().optional(),
  /** The stack that fires the schedule: the one that wrote this entry. */
  owner: z.string(),
  /** Number of the entry with the definition; times before it do not count. */
  generation: z.int().positive(),
  definition: scheduleDefinition,
});

export type ScheduleRecord = z.infer<typeof scheduleRecord>;

/** The outcome of one time of a schedule. A dense sequence; a time that had to wait has a second entry. */
export const firingRecord = z.object({
  format,
  schedule: z.string(),
  n: z.int().positive(),
  at: z.string(),
  generation: z.int().positive(),
  /** The scheduled time, without jitter or delay. */
  time: z.string(),
  kind: z.enum(['scheduled', 'triggered', 'backfill']),
  outcome: z.enum(['started', 'waiting', 'skipped', 'failed']),
  /** The run, if one was started. */
  runId: z.string().optional(),
  /** Runs because of which it waited or was skipped. */
  by: z.array(z.string()).optional(),
  why: z.string().optional(),
});

export type FiringRecord = z.infer<typeof firingRecord>;
