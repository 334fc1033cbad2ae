/**
 * The records of a run, as zod schemas and types. FORMAT.md beside this file says what each is for.
 * All records carry `format: 1`; readers refuse newer formats. Unknown fields of format 1 are kept out by `strip`.
 */
import { desiredStates, runStates } from '../run-states.ts';
import { z } from 'zod';
import { isInputFolder, retainedKeys } from './own-keys.ts';
import { overlapPolicies } from '../schedules/policies.ts';

export const recordFormat = 1;

export const digest = z.string().regex(/^[0-9a-f]{64}$/, 'expected a SHA-256 in lower-case hex');
/** A file is made under this name: it must not lead out of its folder. */
const plainFileName = z
  .string()
  .max(255)
  .regex(/^(?!\.{1,2}$)[^/\\\0]+$/, 'expected the name of a file, without folders');
/** One name of a key: run ids come into keys. */
const keyName = z.string().regex(/^[\w-]+$/);
const format = z.literal(recordFormat);
/** Numbers by metric name. Not-a-number and infinities are strings in JSON. */
export const metricValues = z.record(z.string(), z.union([z.number(), z.enum(['NaN', 'Infinity', '-Infinity'])]));
const count = z.int().nonnegative();

/** Who wrote a record: for people, never for decisions. */
const writer = z.object({ process: z.string(), at: z.string() });
export type Writer = z.infer<typeof writer>;

/** Everything that changes from iteration to iteration besides the weights. */
export const counters = z.object({
  /** Next draw number. */
  cursor: count,
  /** Optimiser steps planned so far: position of the learning-rate schedule. */
  optimizerSteps: count,
  /** Consecutive updates in which no step was taken. */
  badSteps: count,
  /** Coefficient of the KL loss or penalty. */
  klCoef: z.number(),
});
export type Counters = z.infer<typeof counters>;

const drawRange = z.tuple([count, count]);

export const runRecord = z.object({
  format,
  runId: z.string(),
  name: z.string(),
  kind: z.enum(['rl', 'sft']),
  createdAt: z.string(),
  /** The firing of a schedule that made it. */
  schedule: z.object({ name: z.string(), generation: z.int().positive(), time: z.string() }).optional(),
  /** Of a fork: the state of another run that it begins with. Read until its first term is open, and never again. */
  origin: z
    .object({ runId: keyName, position: count, stateDigest: digest, counters, skippedDraws: z.array(drawRange) })
    .optional(),
});
export type RunRecord = z.infer<typeof runRecord>;

/** What a run reads besides its records, all by digest. */
export const runInputs = z.object({
  model: digest,
  reference: digest.optional(),
  train: digest,
  /** Rows of the training data that are used. */
  trainRows: z.int().positive(),
  validation: digest.optional(),
  validationRows: z.int().positive().optional(),
  /** The scorer: a built-in's name with the revision of its code, or a user's module by digest. */
  scorer: z
    .discriminatedUnion('type', [
      /** Without a name each row's data source chooses. */
      z.object({ type: z.literal('builtin'), name: z.string().optional(), revision: z.string() }),
      z.object({
        type: z.literal('module'),
        module: digest,
        fileName: plainFileName,
        exportName: z.string(),
        deterministic: z.boolean(),
      }),
    ])
    .optional(),
});
export type RunInputs = z.infer<typeof runInputs>;

export const revisionRecord = z.object({
  format,
  runId: z.string(),
  revision: z.int().positive(),
  /** Valid for iterations after this position. */
  fromPosition: count,
  /** The resolved recipe; validated by core/recipe. */
  recipe: z.record(z.string(), z.unknown()),
  inputs: runInputs,
  createdAt: z.string(),
});
export type RevisionRecord = z.infer<typeof revisionRecord>;

/** What a machine must have to give the same bits. */
export const numericProfile = z.object({
  /**
   * `det-<arithmetic version>`: equal ids give equal bits for equal inputs. `any`: numbers that can be compared. Builds
   * without an arithmetic version wrote others: former-profiles.ts.
   */
  id: z.string(),
  compute: z.enum(['fp32', 'bf16']),
  deterministic: z.boolean(),
  isa: z.string(),
  /** Hash of the engine's build: for people, no decision depends on it. */
  engine: z.string(),
  /** Tokens of the largest micro-batch: part of the order of sums over tokens. */
  maxTokensPerMicroBatch: z.int().positive(),
});
export type NumericProfile = z.infer<typeof numericProfile>;

export const termRecord = z.object({
  format,
  runId: z.string(),
  term: z.int().positive(),
  /**
   * Where the log goes on: the record of a committed position, its digest, and the term that holds it. Undefined for the
   * first term.
   */
  parent: z.object({ term: z.int().positive(), position: count, record: digest }).optional(),
  /** Only in the first term of a fork: it counts on from its origin's position. Absent: position 0, all counters zero. */
  base: z.object({ position: count, counters }).optional(),
  /**
   * The terms that the log goes through before this one, newest first: [term, position where it begins, recipe revision].
   * Absent in older records: readers then follow `parent` from term to term.
   */
  lineage: z.array(z.tuple([z.int().positive(), count, z.int().positive()])).optional(),
  /** State at the position where the term begins. */
  startState: digest,
  startWeights: digest,
  /** The recipe revision that its batches are made with. */
  revision: z.int().positive().default(1),
  profile: numericProfile,
  /** The stack that drives the run: only its control processes go on in this term. */
  owner: z.string(),
  reason: z.string(),
  /**
   * Iterations after this term's position up to `until` apply again what an earlier term committed: their batches are copies
   * of those that the log has behind `term`. For a term with another arithmetic than the one before.
   */
  adopts: z.object({ term: z.int().positive(), until: count }).optional(),
  /** Draw numbers that no batch of this term uses: half-open ranges, ascending. */
  skippedDraws: z.array(drawRange),
  writer,
});
export type TermRecord = z.infer<typeof termRecord>;

export const drawOutcome = z.enum(['trained', 'filtered', 'failed', 'surplus', 'stale']);

/** One draw of the prompt stream and what became of its samples. */
export const drawRecord = z.object({
  draw: count,
  row: count,
  fate: drawOutcome,
  /** Why, unless trained. */
  reason: z.string().optional(),
  /** Per sample: index into the batch, or the reason it is not there. */
  samples: z.array(z.union([count, z.string()])),
});
export type DrawRecord = z.infer<typeof drawRecord>;

export const lossSettings = z.object({
  kind: z.enum(['policy', 'sft']),
  lossMode: z.string(),
  clipRatioLow: z.number(),
  clipRatioHigh: z.number(),
  clipRatioC: z.number(),
  lossAggMode: z.string(),
  entropyCoeff: z.number(),
  useKlLoss: z.boolean(),
  klLossCoef: z.number(),
  klLossType: z.string(),
  temperature: z.number(),
  /** Width that `seq-mean-token-sum-norm` divides by. */
  lossScaleFactor: z.number(),
});
export type LossSettings = z.infer<typeof lossSettings>;

export const optimizerSettings = z.object({
  beta1: z.number(),
  beta2: z.number(),
  eps: z.number(),
  weightDecay: z.number(),
  maxGradNorm: z.number(),
});
export type OptimizerSettings = z.infer<typeof optimizerSettings>;

export const batchRecord = z.object({
  format,
  runId: z.string(),
  term: z.int().positive(),
  iteration: z.int().positive(),
  /** Digest of the record before this one: update k−1, or the term's. */
  parent: digest,
  parentState: digest,
  revision: z.int().positive(),
  profile: z.string(),
  /** safetensors with everything that the update reads: see FORMAT.md, "Batch tensors". */
  tensors: digest,
  /** `on-policy`: one optimiser step, so the old log-probs are those of its own forward pass. */
  oldLogProbs: z.enum(['stored', 'on-policy']),
  /** Learning rate of each optimiser step. */
  learningRates: z.array(z.number()),
  loss: lossSettings,
  optimizer: optimizerSettings,
  /** Job ids of the results that this batch was made of: rollouts each with its reward, then the job that made the batch. */
  results: z.array(z.string()),
  draws: z.array(drawRecord),
  before: counters,
  after: counters,
  metrics: metricValues,
  timings: metricValues,
  /** `skip`: a person decided that this batch is not trained on. */
  decision: z.enum(['train', 'skip']),
  /** The batch record of the same iteration that this one repeats: the term that holds it, and its digest. */
  adopted: z.object({ term: z.int().positive(), record: digest }).optional(),
  writer,
});
export type BatchRecord = z.infer<typeof batchRecord>;

/** In place of the record that would have come next: whoever was about to write it is too late. */
const seal = {
  format,
  runId: z.string(),
  term: z.int().positive(),
  iteration: z.int().positive(),
  /** Digest of the last record before it. */
  parent: digest,
  /** Who closed the term, and what for. */
  owner: z.string(),
  reason: z.string(),
  writer,
};
export const batchSeal = z.object({ ...seal, decision: z.literal('seal') });
export type BatchSeal = z.infer<typeof batchSeal>;
/** What may lie at a batch key. */
export const batchDecision = z.discriminatedUnion('decision', [batchRecord, batchSeal]);

export const optimizerStep = z.object({
  lr: z.number(),
  gradNorm: z.union([z.number(), z.enum(['NaN', 'Infinity', '-Infinity'])]),
  taken: z.boolean(),
});
export type OptimizerStep = z.infer<typeof optimizerStep>;

export const updateRecord = z.object({
  format,
  runId: z.string(),
  term: z.int().positive(),
  iteration: z.int().positive(),
  /** Digest of the batch record. */
  batch: digest,
  parentState: digest,
  outcome: z.enum(['applied', 'skipped']),
  reason: z.string().optional(),
  stateDigest: digest,
  weightsDigest: digest,
  steps: z.array(optimizerStep),
  after: counters,
  metrics: metricValues,
  timings: metricValues,
  writer,
});
export type UpdateRecord = z.infer<typeof updateRecord>;

/** Closes a term whose last batch is not applied: that batch no longer counts. */
export const updateSeal = z.object({ ...seal, outcome: z.literal('seal') });
export type UpdateSeal = z.infer<typeof updateSeal>;
/** What may lie at an update key. */
export const updateDecision = z.discriminatedUnion('outcome', [updateRecord, updateSeal]);

export const evalRecord = z.object({
  format,
  runId: z.string(),
  term: z.int().positive(),
  /** Policy version: 0 is the base. */
  iteration: count,
  weightsDigest: digest,
  questions: z.int().positive(),
  failed: count,
  /** Mean of `acc` (or of the score) over questions. */
  accuracy: z.number(),
  metrics: metricValues,
  timings: metricValues,
  results: z.array(z.string()),
  writer,
});
export type EvalRecord = z.infer<typeof evalRecord>;

export const shardInfo = z.object({
  blob: digest,
  bytes: count,
  /** Names inside, each with the range [start, end) of its elements that this shard holds. */
  tensors: z.array(z.object({ name: z.string(), start: count, end: count })),
});
export type ShardInfo = z.infer<typeof shardInfo>;

export const checkpointManifest = z.object({
  format,
  runId: z.string(),
  term: z.int().positive(),
  iteration: count,
  stateDigest: digest,
  weightsDigest: digest,
  /** Shards of each part of the actor's state: fp32 weights, first and second moments. */
  shards: z.array(shardInfo),
  parameters: z.array(z.object({ name: z.string(), shape: z.array(count) })),
  state: z.record(z.string(), z.union([z.number(), z.string()])),
});
export type CheckpointManifest = z.infer<typeof checkpointManifest>;

export const weightsManifest = z.object({
  format,
  weightsDigest: digest,
  dtype: z.enum(['F32']),
  shards: z.array(shardInfo),
});
export type WeightsManifest = z.infer<typeof weightsManifest>;

/** State of a run as people see it, and what they want. The newest entry counts. */
export const statusEntry = z.object({
  format,
  runId: z.string(),
  n: count,
  at: z.string(),
  /** What a person asked for last. */
  wish: z.enum(desiredStates),
  state: z.enum(runStates),
  /** Why it is paused or failed: error JSON. */
  reason: z
    .object({ code: z.string(), message: z.string(), hint: z.string().optional(), where: z.string().optional() })
    .optional(),
});
export type StatusEntry = z.infer<typeof statusEntry>;

/**
 * A fork of this run is being made and reads what leads to a position: nothing of it may be removed. It holds from its
 * creation until the fork has its first term (`runs/<by>/terms/1/term.json`) or is deleted (`runs/<by>/removed.json`).
 */
export const pin = z.object({
  format,
  runId: z.string(),
  /** Run id of the fork, in the same store. */
  by: keyName,
  position: count,
  at: z.string(),
});
export type Pin = z.infer<typeof pin>;

/** What is left of a run that was deleted, beside its run record. */
export const tombstone = z.object({
  format,
  runId: z.string(),
  removedAt: z.string(),
  /** State and iterations when it was deleted. */
  state: z.enum(runStates),
  iterations: count,
});
export type Tombstone = z.infer<typeof tombstone>;

/** A position that somebody relies on for a time: an export, a redo. */
export const timedPin = z.object({ id: z.string(), position: count, why: z.string(), until: z.string() });
export type TimedPin = z.infer<typeof timedPin>;

/** Keys that the janitor removes as they stand, so they are checked like digests. */
const blobKey = z.string().regex(retainedKeys.blob, 'expected a blob of this run');
const checkpointKey = z.string().regex(retainedKeys.checkpoint, 'expected a checkpoint of this run');
const retainedKey = z.string().regex(retainedKeys.blobOrManifest, 'expected a blob or a manifest of this run');

/**
 * What of a run may be gone, and what holds that back. A dense sequence, the newest counts: pins and removals are
 * decisions at one key, so they cannot pass each other.
 */
const storedRetention = z
  .object({
    format,
    runId: z.string(),
    n: count,
    at: z.string(),
    /** Nobody goes back before this position any more: what only earlier ones need may be removed. It never falls. */
    floor: count,
    /** What positions up to here had is marked, or removed. */
    cleared: count,
    pins: z.array(timedPin),
    /** Marked for removal since the moment `condemnedAt`: keys that nothing can need again. A later pass removes them. */
    condemned: z.array(retainedKey),
    condemnedAt: z.string(),
    /** Below the floor, but something above it has them too: looked at again in every pass. */
    shared: z.array(blobKey),
    /** Checkpoints whose every shard was read and found whole. */
    verified: z.array(checkpointKey),
    /** Terms up to `seen` have no records of positions after `cleared`, but for those in `live`. */
    terms: z.object({ seen: count, live: z.array(z.int().positive()) }).optional(),
    /** The run had ended with this status entry, and a pass found nothing more to do. */
    settled: count.optional(),
    /** Orphaned blobs, which no record names, found when the run had ended with the status entry `status`. */
    strays: z.object({ status: count, keys: z.array(blobKey), since: z.string(), removing: z.boolean() }).optional(),
  })
  .refine(
    ({ runId, condemned, shared, verified, strays }) =>
      [...condemned, ...shared, ...verified, ...(strays?.keys ?? [])].every((key) => key.startsWith(`runs/${runId}/`)),
    'expected keys of this run, found one of another',
  );

/** As the code calls the fields whose stored names are older: `condemned` is `marked`, `strays` are `orphans`. */
export const retentionEntry = storedRetention.transform(
  ({ condemned: marked, condemnedAt: markedAt, strays: orphans, ...entry }) => ({
    ...entry,
    marked,
    markedAt,
    ...(orphans === undefined ? {} : { orphans }),
  }),
);
export type RetentionEntry = z.infer<typeof retentionEntry>;

/** The entry under the names that are stored. */
export function toStoredRetention({
  marked: condemned,
  markedAt: condemnedAt,
  orphans: strays,
  ...entry
}: RetentionEntry): z.input<typeof storedRetention> {
  return { ...entry, condemned, condemnedAt, ...(strays === undefined ? {} : { strays }) };
}

const inputFolders =
  <T>(folderOf: (one: T) => string) =>
  (all: readonly T[]) =>
    all.filter((one) => isInputFolder(folderOf(one)));

/**
 * Models and datasets that no run names. Dense, the newest counts. Entries of the first weeks also name folders of the
 * user's own; these are left out when they are read.
 */
export const inputsEntry = z.object({
  format,
  n: count,
  /** Folders with the moment since when nothing names them. */
  unnamed: z.array(z.object({ folder: z.string(), since: z.string() })).transform(inputFolders(({ folder }) => folder)),
  /** Being removed at this moment: a run that wants one of them waits, and stores it again. */
  removing: z.array(z.string()).transform(inputFolders((folder) => folder)),
  /** The names of the files that petrel wrote into a folder of `removing`; nothing else in it is removed. */
  files: z.record(z.string(), z.array(z.string())).default({}),
  /** By folder: the recipe revision of a run, or a schedule, that names it. Only a hint where to look first. */
  namedBy: z.record(z.string(), z.string()).default({}),
});
export type InputsEntry = z.infer<typeof inputsEntry>;

/** What a finished job left. `output` is by stage; see core/wire/jobs.ts. */
export const resultRecord = z.object({
  format,
  jobId: z.string(),
  stage: z.string(),
  output: z.record(z.string(), z.unknown()),
  timings: metricValues,
  writer,
});
export type ResultRecord = z.infer<typeof resultRecord>;

/** What a schedule starts, and when. Frozen when it was added: files are not read again. */
export const scheduleDefinition = z.object({
  /** When it was added: times before are a backfill's. */
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
  kind: z.enum(['rl', 'sft']),
  /** As in a run's revision. A user's scorer module is a blob of the schedule. */
  recipe: z.record(z.string(), z.unknown()),
  inputs: runInputs,
});
export type ScheduleDefinition = z.infer<typeof scheduleDefinition>;

/** A schedule as its owner wants it. The newest entry of a dense sequence counts. */
export const scheduleRecord = z.object({
  format,
  schedule: z.string(),
  n: z.int().positive(),
  at: z.string(),
  state: z.enum(['active', 'paused', 'removed']),
  note: z.string().optional(),
  /** The stack that fires it: the one that wrote this entry. */
  owner: z.string(),
  /** Entry that brought the definition: times are counted anew from there. */
  generation: z.int().positive(),
  definition: scheduleDefinition,
});
export type ScheduleRecord = z.infer<typeof scheduleRecord>;

/** What became of one time of a schedule. A dense sequence; a time that had to wait has a second entry. */
export const firingRecord = z.object({
  format,
  schedule: z.string(),
  n: z.int().positive(),
  at: z.string(),
  generation: z.int().positive(),
  /** The time it stands for, without jitter or delay. */
  time: z.string(),
  kind: z.enum(['scheduled', 'triggered', 'backfill']),
  outcome: z.enum(['started', 'waiting', 'skipped', 'failed']),
  /** Of one that was started. */
  runId: z.string().optional(),
  /** Runs that made it wait or be skipped. */
  by: z.array(z.string()).optional(),
  why: z.string().optional(),
});
export type FiringRecord = z.infer<typeof firingRecord>;
