/** A batch: everything that an update reads. FORMAT.md describes it. */
import { z } from 'zod';
import { BYPASS_LOSS_TYPES } from '../../rl/rollout-correction/options.ts';
import { batchOf2 } from '../format2.ts';
import {
  count,
  counters,
  digest,
  drawRange,
  metricValues,
  perComponent,
  recordFormat,
  shardedFormat,
  writer,
  seal,
} from './fields.ts';
import { ownModule } from './run.ts';

const drawOutcome = z.enum(['trained', 'filtered', 'failed', 'surplus', 'stale']);

/** One draw of the prompt stream and the outcome of its samples. (`fate` is the stored name of the outcome.) */
const drawRecord = z.object({
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
  /** Weight of the auxiliary loss of a mixture's routers. Absent: it has none. */
  routerAuxLossCoef: z.number().positive().optional(),
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
  format: z.union([z.literal(recordFormat), z.literal(shardedFormat)]),
  runId: z.string(),
  term: z.int().positive(),
  iteration: z.int().positive(),
  /** Digest of the record before this one: update k−1, or the term. */
  parent: digest,
  parentState: digest,
  revision: z.int().positive(),
  /** safetensors with everything that the update reads, or the index of its shards: see FORMAT.md, "Batch tensors". */
  tensors: digest,
  /** Shards in the order of their micro-batches: see FORMAT.md, "Batches in shards". Absent: there are none. */
  shards: z.array(digest).min(1).optional(),
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

export const batchSeal = z.object({ ...seal, decision: z.literal('seal') });

export type BatchSeal = z.infer<typeof batchSeal>;

/** The possible records at a batch key. */
export const batchDecision = z.preprocess(batchOf2, z.discriminatedUnion('decision', [storedBatch, batchSeal]));

/** The format in which a record that names this batch is written. */
export const formatOfBatch = (batch: object): typeof recordFormat | typeof shardedFormat =>
  'shards' in batch ? shardedFormat : recordFormat;
