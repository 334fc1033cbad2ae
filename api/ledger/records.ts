/** The fields of each record that the verifier reads: core/records/FORMAT.md. */
import {
  anyNumber,
  count,
  digest,
  either,
  exactly,
  flag,
  inFormats,
  integer,
  list,
  named,
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

/** Records that are the same in all formats. */
const format = either(exactly(1), either(exactly(2), exactly(3)));
/** The format of a record, also of one that names a batch in shards. */
const shardedFormat = either(format, exactly(4));

const kind = oneOf('rl', 'sft', 'dpo', 'rm');

export const runShape = object({ format, runId: text, name: text, kind });

const scorer = object({ type: oneOf('builtin', 'module'), module: optional(digest), files: optional(digest) });
const ownModule = object({ module: digest });
const inputs = object({
  model: digest,
  reference: optional(digest),
  teacher: optional(digest),
  rewardModel: optional(digest),
  train: digest,
  trainRows: positive,
  validation: optional(digest),
  validationRows: optional(positive),
  scorer: optional(scorer),
  loss: optional(ownModule),
  estimator: optional(ownModule),
  sampler: optional(object({ module: digest, start: digest })),
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
  kind,
  seed: integer,
  data: object({
    seed: nullable(integer),
    shuffle: flag,
    train_batch_size: positive,
    oversample_factor: optional(number),
    gen_batch_size: optional(nullable(positive)),
    sampler: optional(nullable(text)),
    curriculum: optional(object({ enable: flag })),
  }),
  rollout: object({ n: positive, val_kwargs: object({ n: positive }) }),
  actor: object({ ppo_mini_batch_size: positive, ppo_epochs: positive, optim: rate }),
  algorithm: object({
    adv_estimator: optional(text),
    filter_groups: optional(object({ enable: optional(flag) })),
    use_pf_ppo: optional(flag),
    rollout_correction: optional(object({ rollout_rs: optional(nullable(text)), bypass_mode: optional(flag) })),
  }),
  reward: optional(
    object({
      reward_model: optional(object({ enable: flag, weight: optional(number), scorer_weight: optional(number) })),
    }),
  ),
  trainer: object({
    total_epochs: positive,
    total_training_steps: nullable(positive),
    val_only: flag,
    val_before_train: flag,
    test_freq: integer,
    critic_warmup: optional(integer),
  }),
});
export type LedgerRecipe = Of<typeof recipe>;

export const revisionShape = object({ format, runId: text, revision: positive, recipe, inputs });
export type Revision = Of<typeof revisionShape>;

const counters1 = object({ cursor: count, optimizerSteps: count, badSteps: count, klCoef: number });
export type Counters1 = Of<typeof counters1>;
const controller = either(number, either(text, object({ blob: digest })));
const counters = object({
  cursor: count,
  badSteps: count,
  optimizerSteps: named(count),
  controllers: named(controller),
});
export type LedgerCounters = Of<typeof counters>;

export const countersOf1 = ({ cursor, badSteps, optimizerSteps, klCoef }: Counters1): LedgerCounters => ({
  cursor,
  badSteps,
  optimizerSteps: { actor: optimizerSteps },
  controllers: { klCoef },
});

const termFields = {
  runId: text,
  term: positive,
  parent: optional(object({ term: positive, position: count, record: digest })),
  /** Triples: term, the position where it begins, and its revision. */
  lineage: optional(list(list(count))),
  revision: optional(positive),
  startState: digest,
  /** The iterations up to `until` repeat the batches of the log that `term` belongs to. */
  adopts: optional(object({ term: positive, until: count })),
  /** The term begins with the state of a standby. */
  standby: optional(object({ result: text })),
  /** Half-open ranges. */
  skippedDraws: list(list(count)),
};
const profile = object({
  id: text,
  compute: optional(oneOf('fp32', 'bf16')),
  /** Name of the engine; in records of format 2 its build. */
  engine: optional(text),
  naming: optional(oneOf('lineage')),
});
const term1 = object({
  ...termFields,
  base: optional(object({ position: count, counters: counters1 })),
  startWeights: digest,
  profile,
});
const term2 = object({
  ...termFields,
  base: optional(object({ position: count, counters })),
  components: named(object({ stateDigest: digest, weightsDigest: digest, profile })),
});
export type Term = Of<typeof term2>;

export const termShape = inFormats(
  term1,
  ({ startWeights, profile: of, base, ...term }): Term => ({
    ...term,
    base: base && { position: base.position, counters: countersOf1(base.counters) },
    components: { actor: { stateDigest: term.startState, weightsDigest: startWeights, profile: of } },
  }),
  term2,
);

const drawShape = object({
  draw: count,
  row: count,
  fate: oneOf('trained', 'filtered', 'failed', 'surplus', 'stale'),
  wave: optional(count),
  reason: optional(text),
  samples: list(either(count, text)),
});
export type LedgerDraw = Of<typeof drawShape>;

const batchFields = {
  format: shardedFormat,
  runId: text,
  term: positive,
  iteration: positive,
  parent: digest,
  parentState: digest,
  revision: positive,
  tensors: digest,
  shards: optional(list(digest)),
  oldLogProbs: oneOf('stored', 'on-policy'),
  layout: optional(oneOf('flat', 'prefixTree')),
  results: list(text),
  baselines: optional(list(text)),
  draws: list(drawShape),
  passedOver: optional(list(list(count))),
  metrics: tree,
  decision: oneOf('train', 'skip'),
  adopted: optional(object({ term: positive, record: digest })),
};
const trained = { profile: text, learningRates: list(number), loss: tree, optimizer: tree };
const batch1 = object({ ...batchFields, ...trained, before: counters1, after: counters1 });
const batch2 = object({ ...batchFields, components: named(object(trained)), before: counters, after: counters });
export type Batch = Of<typeof batch2>;

export const batchShape = inFormats(
  batch1,
  ({ profile: id, learningRates, loss, optimizer, before, after, ...batch }): Batch => ({
    ...batch,
    components: { actor: { profile: id, learningRates, loss, optimizer } },
    before: countersOf1(before),
    after: countersOf1(after),
  }),
  batch2,
);

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

const updateFields = {
  runId: text,
  term: positive,
  iteration: positive,
  batch: digest,
  parentState: digest,
  outcome: oneOf('applied', 'skipped'),
  reason: optional(text),
  stateDigest: digest,
};
const steps = list(object({ lr: number, gradNorm: anyNumber, taken: flag }));
const update1 = object({ ...updateFields, weightsDigest: digest, steps, after: counters1 });
const update2 = object({
  ...updateFields,
  components: named(
    object({
      stateDigest: digest,
      weightsDigest: digest,
      steps,
      publications: named(digest),
      incarnation: optional(text),
    }),
  ),
  after: counters,
});
export type Update = Of<typeof update2>;

export const updateShape = inFormats(
  update1,
  ({ weightsDigest, steps: taken, after, ...update }): Update => {
    const { stateDigest } = update;
    const actor = {
      ...{ stateDigest, weightsDigest, steps: taken, incarnation: undefined },
      publications: { F32: weightsDigest },
    };
    return { ...update, components: { actor }, after: countersOf1(after) };
  },
  update2,
);

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

const cells = named(list(nullable(anyNumber)));
const columns = { metrics: cells, timings: cells };
/** Metrics of a range of iterations in columns. */
export const metricChunkShape = object({
  format: exactly(3),
  runId: text,
  term: positive,
  first: positive,
  last: positive,
  batch: object(columns),
  update: object(columns),
  validations: object({ ...columns, at: list(list(count)) }),
});
export type MetricChunk = Of<typeof metricChunkShape>;
/** What a batch, an update or a validation measured. */
export const measuredShape = object({ metrics: named(anyNumber), timings: named(anyNumber) });

export const resultShape = object({ format: shardedFormat, jobId: text, stage: text, output: tree });
/** Shape of an update, as far as a term names it. */
export const updatedShape = object({
  stateDigest: digest,
  components: named(object({ stateDigest: digest, weightsDigest: digest })),
  after: counters,
});
export const checkpointOutputShape = object({ manifest: optional(text), shards: optional(digest) });
export const rolloutOutputShape = object({ trajectories: digest, samples: positive, responseTokens: count });
export const compareOutputShape = object({ scores: digest, pairs: positive });
export const rewardOutputShape = object({ scores: digest, failed: count });

export const scoreTableShape = object({
  trajectories: digest,
  drawOffsets: optional(list(count)),
  scores: list(nullable(number)),
  reasons: list(nullable(text)),
  columns: tree,
});
export type Scores = Of<typeof scoreTableShape>;

const shard = object({ blob: digest, bytes: count, tensors: list(object({ name: text, start: count, end: count })) });
export type Shard = Of<typeof shard>;

const checkpointFields = { runId: text, term: positive, iteration: count, stateDigest: digest };
/** Hash of the blocks in the digests. Absent: SHA-256. */
const blockHash = optional(oneOf('blake3'));
const parts = {
  weightsDigest: digest,
  shards: list(shard),
  parameters: list(object({ name: text, shape: list(count) })),
};
/** Absent before format 3: fp32 weights and the moments of AdamW. */
const stateParts = optional(
  list(object({ name: text, dtype: oneOf('F32', 'BF16'), elements: count, digest: optional(digest) })),
);
const component = object({
  ...parts,
  blockHash,
  stateDigest: digest,
  steps: count,
  parts: stateParts,
  naming: optional(oneOf('lineage')),
});
export type CheckpointComponent = Of<typeof component>;
const checkpoint1 = object({ ...checkpointFields, ...parts, state: object({ steps: count }) });
const checkpoint2 = object({ ...checkpointFields, components: named(component) });
export type Checkpoint = Of<typeof checkpoint2>;

export const checkpointShape = inFormats(
  checkpoint1,
  ({ weightsDigest, shards, parameters, state, ...checkpoint }): Checkpoint => {
    const { stateDigest } = checkpoint;
    const actor = {
      ...{ stateDigest, weightsDigest, shards, parameters, steps: state.steps },
      ...{ blockHash: undefined, parts: undefined, naming: undefined },
    };
    return { ...checkpoint, components: { actor } };
  },
  checkpoint2,
);

const publication = { weightsDigest: digest, shards: list(shard) };
const weights2 = object({ ...publication, blockHash, component: text, dtypes: named(oneOf('F32', 'BF16')) });
export type Weights = Of<typeof weights2>;
export const weightsShape = inFormats(
  object({ ...publication, dtype: oneOf('F32') }),
  ({ dtype, ...weights }): Of<typeof weights2> => ({
    ...weights,
    blockHash: undefined,
    component: 'actor',
    dtypes: { weights: dtype },
  }),
  weights2,
);

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

/** Shape of the index of a dataset of format 2; written once, not canonical. */
export const datasetIndexShape = object({
  format: exactly(2),
  rows: positive,
  blocks: list(object({ firstRow: count, rows: positive, bytes: positive, sha256: digest })),
});
export type DatasetIndex = Of<typeof datasetIndexShape>;

/** Shape of the record beside a model's files; written once, not canonical. */
export const modelShape = object({
  format,
  files: list(object({ name: text, bytes: count, sha256: digest })),
  base: optional(digest),
});
