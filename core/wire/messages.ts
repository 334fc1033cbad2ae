/**
 * What travels over NATS: who sends it, who reads it, on which subject. Messages carry references, durations and
 * counters: never tensors, never absolute deadlines. Every message has `v`; a reader ignores versions it does not know.
 */
import { z } from 'zod';
import type { JobId, RunId } from '../ids.ts';
import { roles } from '../roles.ts';
import type { Role } from '../roles.ts';

export const wireVersion = 1;
const version = z.literal(wireVersion);

/** Control → one worker, through the role's work queue. The worker claims it before it starts. */
export const jobMessage = z.object({
  v: version,
  jobId: z.string(),
  stage: z.enum(['open', 'rollout', 'reward', 'advantage', 'update', 'checkpoint', 'weights']),
  runId: z.string(),
  /** Where in the log this job stands: from here a trainer recovers the state it needs. */
  at: z.object({ term: z.int().nonnegative(), iteration: z.int().nonnegative() }),
  /** Store URL: `file:///…` or `s3://…`. */
  store: z.string(),
  traceparent: z.string().optional(),
  input: z.record(z.string(), z.unknown()),
});
export type JobMessage = z.infer<typeof jobMessage>;

/** Worker → waiting activity (request). No answer means that nobody waits: the message goes back, delayed. */
export const claimRequest = z.object({
  v: version,
  jobId: z.string(),
  worker: z.string(),
  incarnation: z.string(),
  /** How the process before this one, of the same name, ended: `SIGSEGV`, `exit code 1`. */
  predecessorEnded: z.string().optional(),
});
export type ClaimRequest = z.infer<typeof claimRequest>;
/** `alone`: the job was present when a worker died, so it runs with nothing beside it. */
export const claimReply = z.object({
  v: version,
  answer: z.enum(['go', 'drop', 'held']),
  alone: z.boolean(),
  holder: z.string().optional(),
});
export type ClaimReply = z.infer<typeof claimReply>;

const errorJson = z.object({
  code: z.string(),
  message: z.string(),
  hint: z.string().optional(),
  where: z.string().optional(),
});

/** Worker → waiting activity. Losing one costs time only: the result object is the truth. */
export const jobEvent = z.discriminatedUnion('type', [
  z.object({
    v: version,
    type: z.literal('progress'),
    worker: z.string(),
    done: z.number(),
    total: z.number(),
    note: z.string(),
  }),
  z.object({ v: version, type: z.literal('done'), worker: z.string() }),
  z.object({
    v: version,
    type: z.literal('failed'),
    worker: z.string(),
    kind: z.enum(['terminal', 'retryable', 'pause', 'preempted', 'unfit', 'unknown']),
    error: errorJson,
  }),
  /** The worker will not do it now (leased to another run, no room): the job waits. */
  z.object({ v: version, type: z.literal('queued'), worker: z.string(), because: z.string() }),
]);
export type JobEvent = z.infer<typeof jobEvent>;

/** Worker → everybody, in a key-value bucket whose entries expire. */
export const presence = z.object({
  v: version,
  worker: z.string(),
  incarnation: z.string(),
  predecessorEnded: z.string().optional(),
  pid: z.int(),
  host: z.string(),
  roles: z.array(z.enum(roles)),
  state: z.enum(['starting', 'ready', 'busy', 'draining', 'unhealthy']),
  isa: z.string(),
  /** Hash of the engine's build: for people. */
  engine: z.string().optional(),
  threads: z.int(),
  profiles: z.array(z.string()),
  /** Run that this trainer is leased to. */
  lease: z.string().optional(),
  jobs: z.array(z.string()),
  failuresInARow: z.int(),
  /** Delay of the main thread's event loop since start-up, 99.9th percentile. */
  loopDelayMs: z.number(),
  lastError: errorJson.optional(),
  /** What it lacks: it refuses the jobs that need it, or all jobs while it is `unhealthy`. */
  lacks: z.array(z.object({ what: z.string(), error: errorJson })).optional(),
  since: z.string(),
});
export type Presence = z.infer<typeof presence>;

/** Anyone → the log collector of the control process and `petrel logs -f`. */
export const logLine = z.object({
  v: version,
  at: z.string(),
  level: z.enum(['debug', 'info', 'warn', 'error']),
  source: z.string(),
  text: z.string(),
});
export type LogLine = z.infer<typeof logLine>;

/**
 * Control → workers: the run does not go on for now. It needs no trainer, and nobody waits for its samples. `cancelled`: its
 * other jobs are to end at once, too.
 */
export const leaseRelease = z.object({ v: version, runId: z.string(), cancelled: z.boolean().optional() });

/** Control → whoever watches: what a stage of a run is doing. Lost when nobody listens. */
export const liveNote = z.object({
  v: version,
  stage: z.string(),
  iteration: z.int(),
  done: z.number(),
  total: z.number(),
  note: z.string(),
  queued: z.string().optional(),
});
export type LiveMessage = z.infer<typeof liveNote>;

/** Work queues hold jobs until acked; subjects end in the job id so that one can ask whether a job still waits. */
export const jobStream = (role: Role) => `JOBS_${role}`;
/** `any`, or the id of a numeric profile that the worker must reproduce. */
export const jobSubject = (role: Role, profile: string, runId: RunId, jobId: JobId) =>
  `jobs.${role}.${profile}.${runId}.${jobId}`;
/** Every waiting job of one run. */
export const runJobsFilter = (role: Role, runId: RunId) => `jobs.${role}.*.${runId}.*`;
export const jobStreamSubjects = (role: Role) => `jobs.${role}.>`;
export const jobConsumerFilter = (role: Role, profile: string) => `jobs.${role}.${profile}.>`;
export const jobConsumer = (role: Role, profile: string) => `${role}-${profile}`;
/** Two runs may want the same job, each for itself: its result is stored per run. */
export const claimSubject = (runId: RunId, jobId: JobId) => `claim.${runId}.${jobId}`;
export const eventSubject = (runId: RunId, jobId: JobId) => `ev.${runId}.${jobId}`;
export const logSubject = (runId: RunId) => `log.${runId}`;
export const liveSubject = (runId: RunId) => `live.${runId}`;
export const leaseSubject = 'lease.release';
export const presenceBucket = 'PRESENCE';
/** The same entries as news, for workers that must know at once what another one does. */
export const presenceSubject = (worker: string) => `presence.${worker}`;

/** Durations of the dispatch plane, in ms. `local`: one machine. `fleet`: machines apart, clocks apart, real networks. */
export interface Timing {
  /** A worker that is not heard of this long loses its job. */
  readonly ackWaitMs: number;
  /** So does one that is heard of, but commits no work: longer than any single micro-batch or loading of a model takes. */
  readonly stallMs: number;
  /** How often progress is looked at and told. */
  readonly progressMs: number;
  /** How often samples in flight are written into the journal: what is decoded twice after a death is at most this. */
  readonly journalMs: number;
  /** How long a worker waits for the answer to a claim. */
  readonly claimMs: number;
  /** Age at which a presence entry expires; renewed three times in between. */
  readonly presenceMs: number;
  /** How often a waiting activity checks that its job still exists. */
  readonly watchdogMs: number;
  /** Temporal heartbeat timeout of waiting activities. */
  readonly heartbeatMs: number;
}
export const timings: Readonly<Record<'local' | 'fleet', Timing>> = {
  local: {
    ackWaitMs: 2_000,
    stallMs: 120_000,
    progressMs: 500,
    journalMs: 500,
    claimMs: 1_000,
    presenceMs: 3_000,
    watchdogMs: 2_000,
    heartbeatMs: 3_000,
  },
  fleet: {
    ackWaitMs: 60_000,
    stallMs: 300_000,
    progressMs: 5_000,
    journalMs: 500,
    claimMs: 5_000,
    presenceMs: 45_000,
    watchdogMs: 15_000,
    heartbeatMs: 60_000,
  },
};
