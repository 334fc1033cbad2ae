/**
 * The records of a run, as zod schemas and types. FORMAT.md in this folder describes them. They are written in `format:
 * 3`; those of formats 1 and 2 are read as format 3 (format1.ts, format2.ts), and readers refuse newer formats. Unknown
 * fields are dropped by `strip`.
 */
import { RUN_KINDS } from '../run-kinds.ts';
import { desiredStates, runStates } from '../run-states.ts';
import { weightsFormats } from '../ports/policy.ts';
import { BYPASS_LOSS_TYPES } from '../rl/rollout-correction/options.ts';
import { z } from 'zod';
import {
  batchOf2,
  checkpointOf2,
  componentOf2,
  originOf2,
  profileOf2,
  publicationOf2,
  resultOf2,
  termOf2,
  updateOf2,
} from './format2.ts';
import { isInputFolder, retainedKeys } from './own-keys.ts';
import { overlapPolicies } from '../schedules/policies.ts';

export const recordFormat = 3;

export const digest = z.string().regex(/^[0-9a-f]{64}$/, 'expected a SHA-256 in lower-case hex');
/** A file is created with this name, so it must not lead out of its folder. */
const plainFileName = z
  .string()
  .max(255)
  .regex(/^(?!\.{1,2}$)[^/\\\0]+$/, 'expected the name of a file, without folders');
/** One part of a key: run ids are used in keys. */
const keyName = z.string().regex(/^[\w-]+$/);
/** Records that are the same in all formats keep the number that they were written with. */
const format = z.union([z.literal(1), z.literal(2), z.literal(recordFormat)]);
/** Numbers by metric name. Not-a-number and infinities are strings in JSON. */
export const metricValues = z.record(z.string(), z.union([z.number(), z.enum(['NaN', 'Infinity', '-Infinity'])]));
const count = z.int().nonnegative();

/** The process that wrote a record; information for users, never used for decisions. */
const writer = z.object({ process: z.string(), at: z.string() });
export type Writer = z.infer<typeof writer>;

/** Name of a part of the state that is trained, saved and published by itself: `actor`, `critic`. See components.ts. */
const componentName = z.string().regex(/^[a-z][A-Za-z]{0,39}$/, 'expected the name of a component, such as actor');
const perComponent = <T extends z.ZodType>(one: T) => z.record(componentName, one);

/** Everything besides the weights that changes from iteration to iteration. */
export const counters = z.object({
  /** Next draw number. */
  cursor: count,
  /** Optimiser steps planned so far, by component: the position in its learning-rate schedule. */
  optimizerSteps: perComponent(count),
  /** Consecutive updates without an optimiser step. */
  badSteps: count,
  /**
   * State of controllers and samplers, by name: `klCoef` is the coefficient of the KL penalty in the reward for
   * the next batch, 0 without one. A large state is a blob of the run.
   */
  controllers: z.record(z.string(), z.union([z.number(), z.string(), z.object({ blob: digest })])),
});
export type Counters = z.infer<typeof counters>;

const drawRange = z.tuple([count, count]);

const storedRun = z.object({
  format,
  runId: z.string(),
  name: z.string(),
  kind: z.enum(RUN_KINDS),
  createdAt: z.string(),
  /** The firing of a schedule that created the run. */
  schedule: z.object({ name: z.string(), generation: z.int().positive(), time: z.string() }).optional(),
  /** Start of a fork: a state of another run. It is read until the fork's first term is open, and not after that. */
  origin: z
    .object({ runId: keyName, position: count, stateDigest: digest, counters, skippedDraws: z.array(drawRange) })
    .optional(),
});
export const runRecord = z.preprocess(originOf2, storedRun);
export type RunRecord = z.infer<typeof runRecord>;

/** A loss or an estimator of the user's own: a blob with its JavaScript, and what it says of itself. */
const ownModule = z.object({
  module: digest,
  /** Name of the file that it was made from. */
  fileName: plainFileName,
  /** What it reads: core/rl/own/types.ts. */
  needs: z.array(z.string()),
  deterministic: z.boolean(),
});
export type OwnModuleInput = z.infer<typeof ownModule>;

/** A sampler of the user's own. */
const ownSampler = ownModule.extend({
  /** The blob with what it said of the rows when the run was created. */
  start: digest,
});
export type OwnSamplerModule = z.infer<typeof ownSampler>;

/** Everything that a run reads besides its records, by digest. */
export const runInputs = z.object({
  model: digest,
  reference: digest.optional(),
  /** The teacher of a distillation. */
  teacher: digest.optional(),
  /** A sequence classifier that scores responses: `reward.reward_model`. */
  rewardModel: digest.optional(),
  train: digest,
  /** Number of training rows that are used. */
  trainRows: z.int().positive(),
  validation: digest.optional(),
  validationRows: z.int().positive().optional(),
  /** The scorer: a built-in's name with the revision of its code, or a user's module by digest. */
  scorer: z
    .discriminatedUnion('type', [
      /** A built-in scorer; without a name, each row's data source decides. */
      z.object({ type: z.literal('builtin'), name: z.string().optional(), revision: z.string() }),
      z.object({
        type: z.literal('module'),
        module: digest,
        fileName: plainFileName,
        exportName: z.string(),
        deterministic: z.boolean(),
        /**
         * A blob with its other files and the list of its packages: rewards/scorer-files.ts. Absent: it is one file.
         */
        files: digest.optional(),
      }),
    ])
    .optional(),
  /** `actor.policy_loss.loss_mode` as a path. */
  loss: ownModule.optional(),
  /** `algorithm.adv_estimator` as a path. */
  estimator: ownModule.optional(),
  /** `data.sampler`. */
  sampler: ownSampler.optional(),
});
export type RunInputs = z.infer<typeof runInputs>;

/** The blobs of a run that its inputs name: code of the user's own, and what a sampler said of the rows. */
export const modulesOf = ({ scorer, loss, estimator, sampler }: RunInputs): string[] => [
  ...(scorer?.type === 'module' ? [scorer.module, ...(scorer.files === undefined ? [] : [scorer.files])] : []),
  ...[loss, estimator, sampler].flatMap((one) => one?.module ?? []),
  ...(sampler === undefined ? [] : [sampler.start]),
];

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

/** Hash of the 8 MiB blocks in the digests of a state: block-hash.ts. */
export const blockHash = z.literal('blake3').optional();

/** What a machine must have to reproduce the same bits. */
export const numericProfile = z.preprocess(
  profileOf2,
  z.object({
    /**
     * `det-…`: equal ids give equal bits for equal inputs (profile-ids.ts). `any`: results are comparable but not
     * equal. Builds without an arithmetic version wrote other ids: former-profiles.ts.
     */
    id: z.string(),
    /** Name of the engine that computes: `trainer.engine` of the recipe. */
    engine: z.string(),
    /** What it computes on: an instruction set, or a model of GPU. */
    device: z.string(),
    /** The engine's build or versions; information for users, never used for decisions. */
    build: z.string(),
    compute: z.enum(['fp32', 'bf16']),
    deterministic: z.boolean(),
    /** Tokens of the largest micro-batch, on which the order of sums over tokens depends. */
    maxTokensPerMicroBatch: z.int().positive(),
    /** How its states are named: by the updates that made them. Absent: by their content. */
    naming: z.literal('lineage').optional(),
    blockHash,
  }),
);
export type NumericProfile = z.infer<typeof numericProfile>;

/** Digests of a component: its weights, and its whole state with the optimiser's. */
const componentState = z.object({ stateDigest: digest, weightsDigest: digest });
export type ComponentState = z.infer<typeof componentState>;

export const termRecord = z.preprocess(
  termOf2,
  z.object({
    format: z.literal(recordFormat),
    runId: z.string(),
    term: z.int().positive(),
    /**
     * The start of a term: the record of a committed position, its digest, and the term that holds it. Undefined for
     * the first term.
     */
    parent: z.object({ term: z.int().positive(), position: count, record: digest }).optional(),
    /**
     * Only in the first term of a fork, which continues its origin's numbering. Absent: position 0, all counters zero.
     */
    base: z.object({ position: count, counters }).optional(),
    /**
     * The earlier terms of the log, newest first: [term, position where it starts, recipe revision]. Absent in older
     * records, whose readers follow `parent` from term to term.
     */
    lineage: z.array(z.tuple([z.int().positive(), count, z.int().positive()])).optional(),
    /** State at the position where the term starts: FORMAT.md, "Digests of a state". */
    startState: digest,
    /** The same of each component, and the arithmetic that computes it. */
    components: perComponent(componentState.extend({ profile: numericProfile })),
    /** The recipe revision of the term's batches. */
    revision: z.int().positive().default(1),
    /** The stack that drives the run: only its control processes append to this term. */
    owner: z.string(),
    reason: z.string(),
    /**
     * Iterations after this term's position up to `until` apply batches again that an earlier term committed; the new
     * batch records are copies of those in the log that ends with `term`. For a term that starts with another state
     * than the log had, or with another arithmetic.
     */
    adopts: z.object({ term: z.int().positive(), until: count }).optional(),
    /**
     * The term starts with the state of a trainer that followed the run, which is not that of the parent: it has
     * applied the same batches and got other last bits. `result`: id of the update job that names this state.
     */
    standby: z.object({ result: z.string() }).optional(),
    /** Draw numbers that no batch of this term uses: half-open ranges, ascending. */
    skippedDraws: z.array(drawRange),
    writer,
  }),
);
export type TermRecord = z.infer<typeof termRecord>;

export const drawOutcome = z.enum(['trained', 'filtered', 'failed', 'surplus', 'stale']);

/** One draw of the prompt stream and the outcome of its samples. (`fate` is the stored name of the outcome.) */
export const drawRecord = z.object({
  draw: count,
  row: count,
  fate: drawOutcome,
  /** Draws are sampled in waves: the later ones replace groups that were filtered. Absent: 0, the first. */
  wave: count.optional(),
  /** The reason, unless trained. */
  reason: z.string().optional(),
  /** Index of each sample in the batch, or the reason why it is not in the batch. */
  samples: z.array(z.union([count, z.string()])),
});
export type DrawRecord = z.infer<typeof drawRecord>;

/** Section `algorithm.rollout_correction` of the recipe; what is off is absent. */
export const rolloutCorrectionSettings = z.object({
  rollout_is: z.enum(['token', 'sequence']).optional(),
  rollout_is_threshold: z.union([z.number(), z.string()]).optional(),
  rollout_is_batch_normalize: z.boolean().optional(),
  rollout_rs: z.string().optional(),
  rollout_rs_threshold: z.union([z.number(), z.string()]).optional(),
  loss_type: z.enum(BYPASS_LOSS_TYPES).optional(),
});
export type RolloutCorrectionSettings = z.infer<typeof rolloutCorrectionSettings>;

export const lossSettings = z.object({
  kind: z.enum(['policy', 'sft', 'value', 'prime', 'logZ', 'dpo', 'rm']),
  lossMode: z.string(),
  clipRatioLow: z.number(),
  clipRatioHigh: z.number(),
  clipRatioC: z.number(),
  lossAggMode: z.string(),
  entropyCoeff: z.number(),
  /** The entropy is reported, also when it is not in the loss. Absent: it is not. */
  calculateEntropy: z.literal(true).optional(),
  useKlLoss: z.boolean(),
  klLossCoef: z.number(),
  klLossType: z.string(),
  /** Weight of the loss on positive examples: core/rl/positive-nll.ts. Absent: it has none. */
  positiveNllCoef: z.number().optional(),
  temperature: z.number(),
  /** The width by which `seq-mean-token-sum-norm` divides. */
  lossScaleFactor: z.number(),
  /** Constants of this loss, as in core/rl/policy-loss/types.ts and value-loss.ts. Absent: it has none. */
  constants: z.record(z.string(), z.union([z.number(), z.string()])).optional(),
  /** Settings of the policy loss `bypass_mode`, which corrects the rollout by itself. */
  rolloutCorrection: rolloutCorrectionSettings.optional(),
  /** The loss is one of the user's own, and `lossMode` the name of its file. Absent: a built-in one. */
  own: ownModule.optional(),
  /** The implicit reward model of PRIME: how it learns, and how it rewards tokens. Of the component `rewardModel`. */
  prime: z
    .object({
      update: z.enum(['before', 'after']),
      lossType: z.string(),
      beta: z.number(),
      lambda: z.number(),
      useGroundTruth: z.boolean(),
      granularity: z.string(),
      norm: z.string(),
      rewardDpoCoef: z.number(),
      rewardGtCoef: z.number(),
    })
    .optional(),
  /** How the policy learns from a teacher: core/rl/distillation. */
  distillation: z
    .object({
      lossMode: z.string(),
      topk: z.int().positive(),
      useTaskRewards: z.boolean(),
      coef: z.number(),
      lossMaxClamp: z.number().optional(),
      logProbMinClamp: z.number().optional(),
      usePolicyGradient: z.boolean(),
      policyLossMode: z.string(),
      clipRatio: z.number(),
      clipRatioLow: z.number(),
      clipRatioHigh: z.number(),
      clipRatioC: z.number(),
    })
    .optional(),
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

/** `prefixTree`: neighbours in a micro-batch that begin with the same prompt share one copy of it. */
export const batchLayout = z.enum(['flat', 'prefixTree']);
export type BatchLayout = z.infer<typeof batchLayout>;

const storedBatch = z.object({
  format: z.literal(recordFormat),
  runId: z.string(),
  term: z.int().positive(),
  iteration: z.int().positive(),
  /** Digest of the record before this one: update k−1, or the term. */
  parent: digest,
  parentState: digest,
  revision: z.int().positive(),
  /** safetensors with everything that the update reads: see FORMAT.md, "Batch tensors". */
  tensors: digest,
  /** `on-policy`: there is one optimiser step, so the old log-probs are those of its own forward pass. */
  oldLogProbs: z.enum(['stored', 'on-policy']),
  /** How micro-batches are laid out: see FORMAT.md, "Batch tensors". Absent: flat. */
  layout: batchLayout.optional(),
  /** How each component is trained on it. */
  components: perComponent(
    z.object({
      /** Id of the arithmetic that computes it. */
      profile: z.string(),
      loss: lossSettings,
      optimizer: optimizerSettings,
      /** Learning rate of each optimiser step. */
      learningRates: z.array(z.number()),
    }),
  ),
  /**
   * Job ids of the results from which this batch was made: each rollout with its reward, then the job that made the
   * batch.
   */
  results: z.array(z.string()),
  /** Job ids of the greedy responses to the same draws, in pairs as in `results`. Absent: the estimator reads none. */
  baselines: z.array(z.string()).optional(),
  draws: z.array(drawRecord),
  /**
   * Draws that a curriculum, a sampler or the estimator spo left out: half-open ranges, ascending. Absent: there are
   * none.
   */
  passedOver: z.array(drawRange).optional(),
  before: counters,
  after: counters,
  metrics: metricValues,
  timings: metricValues,
  /** `skip`: a person decided that this batch is not trained on. */
  decision: z.enum(['train', 'skip']),
  /** The batch record of the same iteration that this one repeats: its term and digest. */
  adopted: z.object({ term: z.int().positive(), record: digest }).optional(),
  writer,
});
export const batchRecord = z.preprocess(batchOf2, storedBatch);
export type BatchRecord = z.infer<typeof batchRecord>;

/** Takes the place of the next record, so that a late writer cannot create that record. */
const seal = {
  format,
  runId: z.string(),
  term: z.int().positive(),
  iteration: z.int().positive(),
  /** Digest of the last record before it. */
  parent: digest,
  /** The process that closed the term, and its reason. */
  owner: z.string(),
  reason: z.string(),
  writer,
};
export const batchSeal = z.object({ ...seal, decision: z.literal('seal') });
export type BatchSeal = z.infer<typeof batchSeal>;
/** The possible records at a batch key. */
export const batchDecision = z.preprocess(batchOf2, z.discriminatedUnion('decision', [storedBatch, batchSeal]));

export const optimizerStep = z.object({
  lr: z.number(),
  gradNorm: z.union([z.number(), z.enum(['NaN', 'Infinity', '-Infinity'])]),
  taken: z.boolean(),
});
export type OptimizerStep = z.infer<typeof optimizerStep>;

const storedUpdate = z.object({
  format: z.literal(recordFormat),
  runId: z.string(),
  term: z.int().positive(),
  iteration: z.int().positive(),
  /** Digest of the batch record. */
  batch: digest,
  parentState: digest,
  outcome: z.enum(['applied', 'skipped']),
  reason: z.string().optional(),
  /** Digest of all components: FORMAT.md, "Digests of a state". */
  stateDigest: digest,
  components: perComponent(
    componentState.extend({
      steps: z.array(optimizerStep),
      /** The process that made it, where its name follows from that: numericProfile.naming. */
      incarnation: z.string().optional(),
      /** What samplers can load, by the type of its values: digests of weights manifests. */
      publications: z.partialRecord(z.enum(weightsFormats), digest),
    }),
  ),
  after: counters,
  metrics: metricValues,
  timings: metricValues,
  writer,
});
export const updateRecord = z.preprocess(updateOf2, storedUpdate);
export type UpdateRecord = z.infer<typeof updateRecord>;

/** Closes a term whose last batch is not applied. That batch is abandoned. */
export const updateSeal = z.object({ ...seal, outcome: z.literal('seal') });
export type UpdateSeal = z.infer<typeof updateSeal>;
/** The possible records at an update key. */
export const updateDecision = z.preprocess(updateOf2, z.discriminatedUnion('outcome', [storedUpdate, updateSeal]));

export const evalRecord = z.object({
  format,
  runId: z.string(),
  term: z.int().positive(),
  /** Policy version: 0 is the base. */
  iteration: count,
  weightsDigest: digest,
  /** Responses that were judged: `rollout.val_kwargs.n` to each question. */
  questions: z.int().positive(),
  /** Responses that could not be scored. */
  failed: count,
  /** Mean of `acc` (or of the score) over these responses; failed ones count as 0. */
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
  /** Tensor names in the shard, each with the range [start, end) of the elements that the shard contains. */
  tensors: z.array(z.object({ name: z.string(), start: count, end: count })),
});
export type ShardInfo = z.infer<typeof shardInfo>;

/** A named array of a state. */
const statePart = z.object({
  name: z.string(),
  dtype: z.enum(weightsFormats),
  elements: count,
  /** Digest of its values: FORMAT.md, "Digests of a state". Absent in manifests before format 3. */
  digest: digest.optional(),
});

/** A component's part of a checkpoint. */
export const componentCheckpoint = z.preprocess(
  componentOf2,
  componentState.extend({
    /** The updates that made it name it. Absent: its content does. */
    naming: z.literal('lineage').optional(),
    blockHash,
    /** Optimiser steps that were taken. */
    steps: count,
    /** The parts of its state: weights and moments, or what else its engine has. */
    parts: z.array(statePart),
    /** Shards of each part. */
    shards: z.array(shardInfo),
    parameters: z.array(z.object({ name: z.string(), shape: z.array(count) })),
  }),
);
export type ComponentCheckpoint = z.infer<typeof componentCheckpoint>;

export const checkpointManifest = z.preprocess(
  checkpointOf2,
  z.object({
    format: z.literal(recordFormat),
    runId: z.string(),
    term: z.int().positive(),
    iteration: count,
    /** Digest of all components. */
    stateDigest: digest,
    components: perComponent(componentCheckpoint),
  }),
);
export type CheckpointManifest = z.infer<typeof checkpointManifest>;

/** What samplers load: publications.ts. */
export const publication = z.object({ format: z.enum(weightsFormats), digest });

/** A publication of a component's weights: publications.ts. */
export const weightsManifest = z.preprocess(
  publicationOf2,
  z.object({
    format: z.literal(recordFormat),
    component: componentName,
    /** Digest of the publication: with F32 the digest of the weights. */
    weightsDigest: digest,
    blockHash,
    /** Type of the values of each tensor in the shards. */
    dtypes: z.record(z.string(), z.enum(weightsFormats)),
    shards: z.array(shardInfo),
  }),
);
export type WeightsManifest = z.infer<typeof weightsManifest>;

/** The run's state and its desired state. The newest entry is valid. */
export const statusEntry = z.object({
  format,
  runId: z.string(),
  n: count,
  at: z.string(),
  /** The desired state: what the user asked for last. */
  wish: z.enum(desiredStates),
  state: z.enum(runStates),
  /** Why the run is paused or failed: error JSON. */
  reason: z
    .object({ code: z.string(), message: z.string(), hint: z.string().optional(), where: z.string().optional() })
    .optional(),
});
export type StatusEntry = z.infer<typeof statusEntry>;

/**
 * A pin of a fork that is being created: it reads everything up to a position, so nothing of that may be removed. The
 * pin is valid until the fork has its first term (`runs/<by>/terms/1/term.json`) or is deleted
 * (`runs/<by>/removed.json`).
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

/** The remaining record of a deleted run, besides its run record. */
export const tombstone = z.object({
  format,
  runId: z.string(),
  removedAt: z.string(),
  /** State and iterations at the time of the deletion. */
  state: z.enum(runStates),
  iterations: count,
});
export type Tombstone = z.infer<typeof tombstone>;

/** A position that a process needs for some time: an export, a redo. */
export const timedPin = z.object({ id: z.string(), position: count, why: z.string(), until: z.string() });
export type TimedPin = z.infer<typeof timedPin>;

/** The janitor removes these keys unchanged, so their form is checked. */
const blobKey = z.string().regex(retainedKeys.blob, 'expected a blob of this run');
const checkpointKey = z.string().regex(retainedKeys.checkpoint, 'expected a checkpoint of this run');
const retainedKey = z.string().regex(retainedKeys.blobOrManifest, 'expected a blob or a manifest of this run');

/**
 * Which objects of a run may be missing, and which are pinned. A dense sequence, of which the newest entry is valid.
 * Pins and removals are decided at the same key, so neither can miss the other.
 */
const storedRetention = z
  .object({
    format,
    runId: z.string(),
    n: count,
    at: z.string(),
    /**
     * The run never goes back before this position, so objects that only earlier positions need may be removed. It
     * never falls.
     */
    floor: count,
    /** Objects of the positions up to here are marked or removed. */
    cleared: count,
    pins: z.array(timedPin),
    /** Unreachable objects, marked for removal at the time `condemnedAt`. A later pass removes them. */
    condemned: z.array(retainedKey),
    condemnedAt: z.string(),
    /** Objects below the floor that positions above it share. Every pass checks them again. */
    shared: z.array(blobKey),
    /** Checkpoints of which every shard was read and verified. */
    verified: z.array(checkpointKey),
    /** Terms up to `seen` have no records of positions after `cleared`, except those in `live`. */
    terms: z.object({ seen: count, live: z.array(z.int().positive()) }).optional(),
    /** The run had ended with this status entry, and a pass found nothing more to do. */
    settled: count.optional(),
    /** Orphaned blobs, which no record names. They were found when the run had ended with the status entry `status`. */
    strays: z.object({ status: count, keys: z.array(blobKey), since: z.string(), removing: z.boolean() }).optional(),
  })
  .refine(
    ({ runId, condemned, shared, verified, strays }) =>
      [...condemned, ...shared, ...verified, ...(strays?.keys ?? [])].every((key) => key.startsWith(`runs/${runId}/`)),
    'expected keys of this run, found one of another',
  );

/**
 * The entry with the code's names of fields whose stored names are older: `condemned` is `marked`, `strays` are
 * `orphans`.
 */
export const retentionEntry = storedRetention.transform(
  ({ condemned: marked, condemnedAt: markedAt, strays: orphans, ...entry }) => ({
    ...entry,
    marked,
    markedAt,
    ...(orphans === undefined ? {} : { orphans }),
  }),
);
export type RetentionEntry = z.infer<typeof retentionEntry>;

/** The entry with the stored names. */
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
 * Models and datasets that no run names. A dense sequence, of which the newest entry is valid. Entries of the first
 * weeks also name folders of the user; these are left out when an entry is read.
 */
export const inputsEntry = z.object({
  format,
  n: count,
  /** Folders, each with the time since when no run names it. */
  unnamed: z.array(z.object({ folder: z.string(), since: z.string() })).transform(inputFolders(({ folder }) => folder)),
  /** Folders that are being removed now. A run that needs one waits, and stores it again. */
  removing: z.array(z.string()).transform(inputFolders((folder) => folder)),
  /** Names of the files that petrel wrote into a folder of `removing`; other files in it stay. */
  files: z.record(z.string(), z.array(z.string())).default({}),
  /**
   * Maps a folder to the recipe revision of a run, or to a schedule, that names it. It is a hint where to look first.
   */
  namedBy: z.record(z.string(), z.string()).default({}),
});
export type InputsEntry = z.infer<typeof inputsEntry>;

/** The key from which the control processes of this store derive the secrets of claims. No worker reads it. */
export const claimKey = z.object({ format, key: z.string().regex(/^[0-9a-f]{64}$/), writer });
export type ClaimKey = z.infer<typeof claimKey>;

/** Which stack has a name in this store. The newest entry counts. */
export const stackClaim = z.object({
  format,
  name: z.string(),
  n: count,
  /** Random, of the stack that has the name. */
  id: z.string(),
  /** The server of Temporal that stack.yaml names; absent: the stack has its own. */
  temporal: z.object({ address: z.string(), namespace: z.string() }).optional(),
  /** Words for people: where and when a command of the stack claimed it. */
  machine: z.string(),
  at: z.string(),
});
export type StackClaim = z.infer<typeof stackClaim>;

/** A note that a stack of several machines drives a run. Removed when the run has ended. */
export const drivenNote = z.object({
  format,
  stack: z.string(),
  runId: z.string(),
  /** Random; in the key. */
  note: z.string(),
  /** URL of the run's store. */
  store: z.string(),
  kind: z.enum(RUN_KINDS),
  /** Instance of the machine that has noted it, and when. */
  machine: z.string(),
  at: z.string(),
  /** The command on that machine that is about to queue the run again and start its workflow. */
  startedBy: z.object({ pid: z.int(), startTime: z.string() }).optional(),
  /**
   * Proof of all other fields, with a secret of the stack: a stranger who may write into the store cannot make the
   * stack drive a run.
   */
  proof: z.string(),
});
export type DrivenNote = z.infer<typeof drivenNote>;

/** The result of a finished job. `output` depends on the stage; see core/wire/jobs.ts. */
export const resultRecord = z.preprocess(
  resultOf2,
  z.object({
    format: z.literal(recordFormat),
    jobId: z.string(),
    stage: z.string(),
    output: z.record(z.string(), z.unknown()),
    timings: metricValues,
    writer,
    /** Which process claimed the job, and its proof of that. Absent in records of the first builds. */
    claim: z.object({ incarnation: z.string(), proof: z.string() }).optional(),
  }),
);
export type ResultRecord = z.infer<typeof resultRecord>;

/**
 * What a schedule starts, and when. Everything is copied when the schedule is added; later changes of files have no
 * effect.
 */
export const scheduleDefinition = z.object({
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
