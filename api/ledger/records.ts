/** The fields of each record that the verifier reads: core/records/FORMAT.md. */
import {
  anyNumber,
  count,
  digest,
  either,
  exactly,
  flag,
  integer,
  list,
  nullable,
  number,
  object,
  oneOf,
  optional,
  positive,
  text,
  tree,
} from './shape.ts';
import type { Of } from './shape.ts';

const format = exactly(1);

export const runShape = object({ format, runId: text, name: text, kind: oneOf('rl', 'sft') });

const scorer = object({ type: oneOf('builtin', 'module'), module: optional(digest) });
const inputs = object({
  model: digest,
  reference: optional(digest),
  train: digest,
  trainRows: positive,
  validation: optional(digest),
  validationRows: optional(positive),
  scorer: optional(scorer),
});
export type Inputs = Of<typeof inputs>;

const rate = object({
  lr: number,
  lr_warmup_steps: integer,
  lr_warmup_steps_ratio: number,
  lr_scheduler_type: oneOf('constant', 'cosine', 'wsd'),
  min_lr_ratio: number,
  init_lr_ratio: nullable(number),
  num_cycles: number,
  stable_ratio: number,
  zero_indexed_step: flag,
  total_training_steps: nullable(positive),
});
export type RateSettings = Of<typeof rate>;

/** The recipe keys that decide which samples and steps an iteration has. */
const recipe = object({
  kind: oneOf('rl', 'sft'),
  seed: integer,
  data: object({ seed: nullable(integer), shuffle: flag, train_batch_size: positive }),
  rollout: object({ n: positive, val_kwargs: object({ n: positive }) }),
  actor: object({ ppo_mini_batch_size: positive, ppo_epochs: positive, optim: rate }),
  trainer: object({
    total_epochs: positive,
    total_training_steps: nullable(positive),
    val_only: flag,
    val_before_train: flag,
    test_freq: integer,
  }),
});
export type LedgerRecipe = Of<typeof recipe>;

export const revisionShape = object({ format, runId: text, revision: positive, recipe, inputs });
export type Revision = Of<typeof revisionShape>;

export const countersShape = object({ cursor: count, optimizerSteps: count, badSteps: count, klCoef: number });
export type LedgerCounters = Of<typeof countersShape>;

export const termShape = object({
  format,
  runId: text,
  term: positive,
  parent: optional(object({ term: positive, position: count, record: digest })),
  base: optional(object({ position: count, counters: countersShape })),
  /** Triples: term, the position where it begins, and its revision. */
  lineage: optional(list(list(count))),
  revision: optional(positive),
  startState: digest,
  startWeights: digest,
  profile: object({ id: text }),
  /** The iterations up to `until` repeat the batches of the log that `term` belongs to. */
  adopts: optional(object({ term: positive, until: count })),
  /** Half-open ranges. */
  skippedDraws: list(list(count)),
});
export type Term = Of<typeof termShape>;

const drawShape = object({
  draw: count,
  row: count,
  fate: oneOf('trained', 'filtered', 'failed', 'surplus', 'stale'),
  reason: optional(text),
  samples: list(either(count, text)),
});
export type LedgerDraw = Of<typeof drawShape>;

export const batchShape = object({
  format,
  runId: text,
  term: positive,
  iteration: positive,
  parent: digest,
  parentState: digest,
  revision: positive,
  profile: text,
  tensors: digest,
  oldLogProbs: oneOf('stored', 'on-policy'),
  layout: optional(oneOf('flat', 'prefixTree')),
  learningRates: list(number),
  loss: tree,
  optimizer: tree,
  results: list(text),
  draws: list(drawShape),
  before: countersShape,
  after: countersShape,
  metrics: tree,
  decision: oneOf('train', 'skip'),
  adopted: optional(object({ term: positive, record: digest })),
});
export type Batch = Of<typeof batchShape>;

/** Takes the place of a batch or an update: nothing can be appended to the term after it. */
const sealFields = {
  format,
  runId: text,
  term: positive,
  iteration: positive,
  parent: digest,
  owner: text,
  reason: text,
};
export const batchSealShape = object({ ...sealFields, decision: oneOf('seal') });
export const updateSealShape = object({ ...sealFields, outcome: oneOf('seal') });

export const updateShape = object({
  format,
  runId: text,
  term: positive,
  iteration: positive,
  batch: digest,
  parentState: digest,
  outcome: oneOf('applied', 'skipped'),
  reason: optional(text),
  stateDigest: digest,
  weightsDigest: digest,
  steps: list(object({ lr: number, gradNorm: anyNumber, taken: flag })),
  after: countersShape,
});
export type Update = Of<typeof updateShape>;

export const evaluationShape = object({
  format,
  runId: text,
  term: positive,
  iteration: count,
  weightsDigest: digest,
  questions: positive,
  failed: count,
  accuracy: number,
  metrics: tree,
  results: list(text),
});
export type Evaluation = Of<typeof evaluationShape>;

export const resultShape = object({ format, jobId: text, stage: text, output: tree });
export const checkpointOutputShape = object({ manifest: text });
export const rolloutOutputShape = object({ trajectories: digest, samples: positive, responseTokens: count });
export const rewardOutputShape = object({ scores: digest, failed: count });

export const scoreTableShape = object({ scores: list(nullable(number)), reasons: list(nullable(text)), columns: tree });
export type Scores = Of<typeof scoreTableShape>;

const shard = object({ blob: digest, bytes: count, tensors: list(object({ name: text, start: count, end: count })) });
export type Shard = Of<typeof shard>;

export const checkpointShape = object({
  format,
  runId: text,
  term: positive,
  iteration: count,
  stateDigest: digest,
  weightsDigest: digest,
  shards: list(shard),
  parameters: list(object({ name: text, shape: list(count) })),
  state: object({ steps: count }),
});
export type Checkpoint = Of<typeof checkpointShape>;

export const weightsShape = object({ format, weightsDigest: digest, dtype: oneOf('F32'), shards: list(shard) });

export const statusShape = object({
  format,
  runId: text,
  n: positive,
  wish: oneOf('run', 'pause', 'stop', 'cancel'),
  state: oneOf('queued', 'running', 'paused', 'stopped', 'completed', 'failed', 'cancelled'),
});

export const retentionShape = object({
  format,
  runId: text,
  n: positive,
  floor: count,
  condemned: list(text),
  verified: list(text),
});

/** Of a dataset of format 2; written once, not canonical. */
export const datasetIndexShape = object({
  format: exactly(2),
  rows: positive,
  blocks: list(object({ firstRow: count, rows: positive, bytes: positive, sha256: digest })),
});
export type DatasetIndex = Of<typeof datasetIndexShape>;

/** Beside a model's files; written once, not canonical. */
export const modelShape = object({ format, files: list(object({ name: text, bytes: count, sha256: digest })) });
