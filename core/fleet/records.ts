/**
 * What the store knows of a fleet: what people want, what was decided to be bought, and what became of each instance.
 * Keys are in core/records/keys.ts. All are created once and never change.
 */
import { z } from 'zod';
import { recordFormat } from '../records/schema.ts';
import { poolName } from '../wire/join.ts';
import { fleetSpec } from './spec.ts';

/** The records of a fleet are the same in both formats. */
const format = z.union([z.literal(2), z.literal(recordFormat)]);
const count = z.int().nonnegative();
const place = z.object({
  zone: z.string(),
  type: z.string(),
  market: z.enum(['spot', 'onDemand']),
  usdPerHour: z.number().nonnegative(),
});

/** What people want of the fleet. The newest of a dense sequence is valid. */
export const fleetRecord = z.object({
  format,
  n: z.int().positive(),
  at: z.string(),
  spec: fleetSpec,
  /** A number of instances instead of the planner's, by pool. */
  scale: z.record(poolName, count),
  /** Instances that are to be given back when their jobs have ended. */
  drained: z.array(z.string()),
});
export type FleetRecord = z.infer<typeof fleetRecord>;

/** Decided before the provider is asked. Whoever finds it without an answer asks again, with the same token. */
export const launchRecord = z.object({
  format,
  n: z.int().positive(),
  pool: poolName,
  at: z.string(),
  place,
  count: z.int().positive(),
  /** The planner's sentence. */
  because: z.string(),
  /** Token of the call: a second call with the same token buys nothing. */
  token: z.string().max(64),
  /** The word with which a machine of this launch shows that it is one. */
  nonce: z.string(),
  /** The script of the instances. */
  userData: z.string(),
  /** ISO time after which they end themselves. */
  expires: z.string(),
  /** How the pool's provider starts an instance. Records from before other providers have no kind. */
  machine: z.looseObject({ kind: z.string().default('ec2'), region: z.string() }),
});
export type LaunchRecord = z.infer<typeof launchRecord>;

/** What the provider answered. */
export const launchAnswerRecord = z.object({
  format,
  n: z.int().positive(),
  pool: poolName,
  at: z.string(),
  instances: z.array(z.object({ id: z.string(), launchedAt: z.string() })),
  refused: z
    .object({ kind: z.enum(['capacity', 'limit', 'configuration']), code: z.string(), message: z.string() })
    .optional(),
});
export type LaunchAnswerRecord = z.infer<typeof launchAnswerRecord>;

/** An instance has joined: with which key, so that no other machine joins in its name. */
export const joinedRecord = z.object({
  format,
  id: z.string(),
  at: z.string(),
  /** Public key. */
  key: z.string(),
  /** The machine's name in NATS and in the jobs. */
  instance: z.string(),
});
export type JoinedRecord = z.infer<typeof joinedRecord>;

/** An instance has a worker that takes jobs: until then it boots. */
export const readyRecord = z.object({ format, id: z.string(), at: z.string() });
export type ReadyRecord = z.infer<typeof readyRecord>;

/** How an instance came to its end. `lost`: without a word; the others are petrel's own doing or foretold. */
const endings = ['unneeded', 'drained', 'interrupted', 'lost', 'expired', 'never-joined', 'unknown'] as const;
export type Ending = (typeof endings)[number];

const why = { format, id: z.string(), at: z.string(), ending: z.enum(endings), because: z.string() };
/** An instance is to end as soon as its jobs have ended, or after a while. */
export const leavingRecord = z.object(why);
export type LeavingRecord = z.infer<typeof leavingRecord>;

/** An instance has ended, and is not billed any more. */
export const endedRecord = z.object(why);
export type EndedRecord = z.infer<typeof endedRecord>;

/** What machines did, for the bill: written by a control process every minute or so. */
export const usageRecord = z.object({
  format,
  spans: z.array(
    z.object({
      instance: z.string(),
      from: z.number(),
      to: z.number(),
      use: z.enum(['useful', 'lost', 'redone', 'transfer']),
      run: z.string(),
      iteration: count,
    }),
  ),
});
export type UsageRecord = z.infer<typeof usageRecord>;
