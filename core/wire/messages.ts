/**
 * Messages over NATS: their sender, reader and subject. They carry references, durations and counters; never tensors or
 * absolute deadlines. Every message has `v`; a reader ignores unknown versions.
 */
import { z } from 'zod';
import type { JobId, RunId } from '../ids.ts';
import { roles } from '../roles.ts';
import type { Role } from '../roles.ts';
import { gpu } from '../machine-needs.ts';
import { reachOf } from '../reach.ts';
import type { Reach } from '../reach.ts';
import { publication } from '../records/schema.ts';
import { engineFacts } from './engine-facts.ts';
import { STAGES } from './jobs/index.ts';
import { holderUrl, weightsHolders } from './weights.ts';
import { workerEvent } from './worker-event.ts';
import { anyPlace, placeWords } from './worker-identity.ts';
import type { WorkerPlace } from './worker-identity.ts';

export const wireVersion = 1;
const version = z.literal(wireVersion);

/** A longer text of a record is not in a message, but read from the store; a message may have 8 MB. */
export const mostRecordChars = 1_000_000;

/** Control → one worker, through the role's work queue. The worker claims it before it starts. */
export const jobMessage = z.object({
  v: version,
  jobId: z.string(),
  stage: z.enum(STAGES),
  runId: z.string(),
  /** Position of this job in the log, from which a trainer restores the state that it needs. */
  at: z.object({ term: z.int().nonnegative(), iteration: z.int().nonnegative() }),
  /** Store URL: `file:///…` or `s3://…`. */
  store: z.string(),
  input: z.record(z.string(), z.unknown()),
  /**
   * How the samples of a rollout job will be scored (jobs.ts, ScoringSettings). They may be scored before the job has a
   * result.
   */
  scoring: z.record(z.string(), z.unknown()).optional(),
  /** What a rollout job loads as its weights. Absent: the fp32 values. */
  publication: publication.optional(),
  /** The rollout job whose samples a reward job scores. */
  follows: z.string().optional(),
  /** The text of the batch record that an update applies. Absent: it is read from the store. */
  batch: z.string().max(mostRecordChars).optional(),
  /** Nobody has asked for the job before, as far as its sender knows: whether it has a result is not looked up. */
  isNew: z.literal(true).optional(),
});
export type JobMessage = z.infer<typeof jobMessage>;

/**
 * Worker → waiting activity (request). No answer means that no process waits: the message returns to the queue with a
 * delay.
 */
export const claimRequest = z.object({
  v: version,
  jobId: z.string(),
  incarnation: z.string(),
  /** How the previous process of this worker name ended: `SIGSEGV`, `exit code 1`. */
  predecessorEnded: z.string().optional(),
});
export type ClaimRequest = z.infer<typeof claimRequest>;
export const claimReply = z.discriminatedUnion('answer', [
  z.object({
    v: version,
    answer: z.literal('go'),
    /** A worker died while it had this job, so the job runs alone. */
    alone: z.boolean(),
    /** The secret with which the worker proves that its result is of this claim (log/objects/result-proof.ts). */
    secret: z.string(),
    /** Where the engine's job may get the run's weights, and what it needs to ask for them (weights.ts). */
    weights: weightsHolders.optional(),
    /** No other worker has begun it, so it has no journal. */
    first: z.literal(true).optional(),
    /** `identityText` of the worker that scores the samples of a rollout job ahead. */
    scorer: z.string().optional(),
  }),
  z.object({ v: version, answer: z.enum(['drop', 'held']) }),
]);
export type ClaimReply = z.infer<typeof claimReply>;

const errorJson = z.object({
  code: z.string(),
  message: z.string(),
  hint: z.string().optional(),
  where: z.string().optional(),
});

/** Worker → waiting activity. Losing one costs only time, because the result is in the store. */
export const jobEvent = z.discriminatedUnion('type', [
  z.object({
    v: version,
    type: z.literal('progress'),
    done: z.number(),
    total: z.number(),
    note: z.string(),
  }),
  /**
   * `result`: the text of the result object that this worker has created. Absent: it is read from the store. It has the
   * proof of the claim, as in the store.
   */
  z.object({ v: version, type: z.literal('done'), result: z.string().max(mostRecordChars).optional() }),
  /** The job was sent to this worker alone, and it has the message. */
  z.object({ v: version, type: z.literal('received') }),
  z.object({
    v: version,
    type: z.literal('failed'),
    incarnation: z.string(),
    /** Proof of the claim: a worker that does not hold the job cannot make it fail (log/objects/result-proof.ts). */
    proof: z.string(),
    kind: z.enum(['terminal', 'retryable', 'pause', 'preempted', 'unfit', 'unknown']),
    error: errorJson,
  }),
  /** The worker does not run it now (leased to another run, disk full): the job waits. */
  z.object({ v: version, type: z.literal('queued'), because: z.string() }),
]);
export type JobEvent = z.infer<typeof jobEvent>;

/** Worker → everyone, in a key-value bucket whose entries expire. */
export const presence = z.object({
  v: version,
  instance: z.string(),
  worker: z.string(),
  incarnation: z.string(),
  predecessorEnded: z.string().optional(),
  pid: z.int(),
  host: z.string(),
  roles: z.array(z.enum(roles)),
  state: z.enum(['starting', 'ready', 'busy', 'draining', 'unhealthy']),
  /** The engines that it has. A worker that only scores has none. */
  engines: z.array(engineFacts),
  threads: z.int(),
  /** The queues whose jobs it takes: queueOf in core/records/profile-ids.ts, with needs of core/machine-needs.ts. */
  profiles: z.array(z.string()),
  /** The pool of its machine, as that says; see `poolOfWorker`. */
  pool: z.string().optional(),
  /** The GPUs of its machine. */
  gpus: z.array(gpu).optional(),
  /** Its round trip to the message server, ms: the shortest of the last ones. */
  roundTripMs: z.number().nonnegative().optional(),
  /** URL where other workers get the weights that it has in memory. */
  serves: holderUrl.optional(),
  /** The run to which this trainer is leased. */
  lease: z.string().optional(),
  /** Another run waits for this trainer. */
  wanted: z.literal(true).optional(),
  /** It follows that run as a standby, and another trainer leads. Absent: it leads. */
  standsBy: z.literal(true).optional(),
  /** The components that it trains of a run that is divided; absent: all. */
  trains: z.array(z.string()).optional(),
  /** The cloud expects to take its machine back. */
  atRisk: z.literal(true).optional(),
  jobs: z.array(z.string()),
  /** Rollout jobs of which this worker has samples that it scores, or has scored, ahead of their reward job. */
  ahead: z.array(z.string()).optional(),
  /** Tokens decoded in a second of decoding, over its last rollout jobs; absent before the first. */
  tokensPerSecond: z.number().nonnegative().optional(),
  failuresInARow: z.int(),
  /** Delay of the main thread's event loop since start-up, 99.9th percentile, in ms. */
  loopDelayMs: z.number(),
  lastError: errorJson.optional(),
  /** The run whose job failed with it; absent when it says something about the worker. */
  lastErrorRun: z.string().optional(),
  /** Unmet needs: the worker refuses the jobs with these needs, or all jobs while it is `unhealthy`. */
  lacks: z.array(z.object({ what: z.string(), error: errorJson })).optional(),
  since: z.string(),
});
export type Presence = z.infer<typeof presence>;

/** A log line, as stored. `source`: the process that wrote it. */
export const logLine = z.object({
  v: version,
  at: z.string(),
  level: z.enum(['debug', 'info', 'warn', 'error']),
  source: z.string(),
  text: z.string(),
  /** What the text says, where the control process says what became of a worker. */
  event: workerEvent.optional(),
});
export type LogLine = z.infer<typeof logLine>;

/** Any process → the log collector of the control process, and `petrel logs -f`. Its source is in the subject. */
export const logNote = logLine.omit({ source: true });

/**
 * Control → workers: the run has paused or ended. It needs no trainer, and no process waits for its samples.
 * `cancelled`: its other jobs end at once too.
 */
export const leaseRelease = z.object({
  v: version,
  runId: z.string(),
  cancelled: z.boolean().optional(),
  /** The run goes on and asks for a trainer again: only its turn has ended. */
  turn: z.literal(true).optional(),
});

/** Control → the other control processes of its stack: the run was cancelled and its jobs end, or it goes on. */
export const cancelNote = z.object({ v: version, from: z.string(), runId: z.string(), cancelled: z.boolean() });

/** Control → trainers: one of them works for the run, so it waits for no other, and need not be in memory twice. */
export const leaseTaken = z.object({
  v: version,
  runId: z.string(),
  /** `identityText` of the trainer. */
  by: z.string(),
  /** The components of its job, where the run is divided. */
  components: z.array(z.string()).optional(),
  standsBy: z.literal(true).optional(),
});

/** Control → whoever listens: this process of a worker is gone. Its presence would expire only later. */
export const workerGone = z.object({
  v: version,
  instance: z.string(),
  worker: z.string(),
  incarnation: z.string(),
});

/** Control → live views: the progress of a run's stage. Lost when no process listens. */
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

/**
 * Work queues keep jobs until they are acked. Subjects end with the job id, so that a process can ask whether a job is
 * still queued.
 */
export const jobStream = (role: Role) => `JOBS_${role}`;
/** `profile`: queueOf in core/records/profile-ids.ts, or `any` for jobs that need no engine. */
export const jobSubject = (role: Role, profile: string, runId: RunId, jobId: JobId) =>
  `jobs.${role}.${profile}.${runId}.${jobId}`;
/** Every queued job of one run. */
export const runJobsFilter = (role: Role, runId: RunId) => `jobs.${role}.*.${runId}.*`;
export const jobStreamSubjects = (role: Role) => `jobs.${role}.>`;
export const jobConsumerFilter = (role: Role, profile: string) => `jobs.${role}.${profile}.>`;
export const jobConsumer = (role: Role, profile: string) => `${role}-${profile}`;
/**
 * The role of the job is part of the subject, because a worker may claim jobs of its own roles only. The run id is,
 * because two runs may need the same job and each stores its own result.
 */
export const claimSubject = (role: Role | '*', runId: RunId, jobId: JobId, from: WorkerPlace) =>
  `claim.${role}.${runId}.${jobId}.${placeWords(from)}`;
/** The claims of every worker; of all jobs of the run for `*`. */
export const claimsOf = (role: Role | '*', runId: RunId, jobId: JobId) => `claim.${role}.${runId}.${jobId}.${anyPlace}`;
export const eventSubject = (runId: RunId, jobId: JobId, from: WorkerPlace) =>
  `ev.${runId}.${jobId}.${placeWords(from)}`;
export const eventsOf = (runId: RunId, jobId: JobId) => `ev.${runId}.${jobId}.${anyPlace}`;
export const logSubject = (runId: RunId, from: WorkerPlace) => `log.${runId}.${placeWords(from)}`;
export const logsOf = (runId: RunId) => `log.${runId}.${anyPlace}`;
export const liveSubject = (runId: RunId) => `live.${runId}`;
export const leaseSubject = 'lease.release';
export const leaseTakenSubject = 'lease.taken';
/** A job for one process of a worker alone, because it has what the job needs. It is in no queue. */
export const ownJobSubject = (worker: string) => `own-job.${worker}`;
export const cancelNotesSubject = 'control.cancelled';
export const workerGoneSubject = 'workers.gone';
export const presenceBucket = 'PRESENCE';
/** The key of a worker's entry. Its roles are in it, because a worker must not pass for one with other roles. */
export const presenceKey = (worker: WorkerPlace & Pick<Presence, 'roles'>) =>
  `${rolesWord(worker.roles)}.${placeWords(worker)}`;
/** The same entries as messages, for the control process, which must learn at once what a worker does. */
export const presenceSubject = (worker: WorkerPlace & Pick<Presence, 'roles'>) => `presence.${presenceKey(worker)}`;
/** The message that is the worker's entry in the bucket. */
export const presenceEntrySubject = (worker: WorkerPlace & Pick<Presence, 'roles'>) =>
  `$KV.${presenceBucket}.${presenceKey(worker)}`;
export const presencesSubject = `presence.*.${anyPlace}`;
const rolesWord = (of: readonly Role[]): string => roles.filter((role) => of.includes(role)).join('-') || 'none';

/** Timing of the dispatch plane, in ms. */
export interface Timing {
  /** A worker that is silent for this long loses its job. */
  readonly ackWaitMs: number;
  /**
   * A worker without progress for this long loses its job too. This is longer than any micro-batch or any step of
   * loading a model.
   */
  readonly stallMs: number;
  /** How often progress is checked and published. */
  readonly progressMs: number;
  /** How often samples in flight are written to the journal. At most this much is decoded twice after a death. */
  readonly journalMs: number;
  /** How long a worker waits for the reply to a claim. */
  readonly claimMs: number;
  /** A worker that has not renewed its presence for so long is taken for gone. */
  readonly presenceMs: number;
  /** How often a waiting activity checks that its job still exists. */
  readonly watchdogMs: number;
  /** Temporal heartbeat timeout of waiting activities. */
  readonly heartbeatMs: number;
}

const local: Timing = {
  ackWaitMs: 2_000,
  stallMs: 120_000,
  progressMs: 500,
  journalMs: 500,
  claimMs: 1_000,
  presenceMs: 3_000,
  watchdogMs: 2_000,
  heartbeatMs: 3_000,
};

/**
 * The timing of a worker by its distance. Over a long way packets are lost: TCP waits at least a round trip before it
 * sends one again, and twice as long each further time (RFC 6298). A job whose worker is silent for longer than
 * `ackWaitMs` goes to another one, and the first result counts.
 */
export const timings: Readonly<Record<Reach, Timing>> = {
  loopback: local,
  region: local,
  regions: { ...local, ackWaitMs: 6_000, journalMs: 1_000, claimMs: 3_000, presenceMs: 9_000 },
};

/** `base` for a worker with this round trip: as patient as its distance asks for. */
export function timingAt(base: Timing, roundTripMs: number | undefined): Timing {
  const far = timings[reachOf(roundTripMs)];
  const longer = (name: keyof Timing) => Math.max(base[name], far[name]);
  return far === local
    ? base
    : {
        ...base,
        ackWaitMs: longer('ackWaitMs'),
        journalMs: longer('journalMs'),
        claimMs: longer('claimMs'),
        presenceMs: longer('presenceMs'),
      };
}
