/** Schemas of the jobs' inputs: a worker parses a job's input before it starts. The types are in jobs.ts. */
import { z } from 'zod';
import { RUN_KINDS } from '../run-kinds.ts';
import { InvalidInputError } from '../errors.ts';
import {
  batchLayout,
  blockHash,
  counters,
  digest,
  lossSettings,
  numericProfile,
  optimizerSettings,
  publication,
  rolloutCorrectionSettings,
  runInputs,
} from '../records/schema.ts';
import { LR_SCHEDULERS } from '../rl/lr-schedule.ts';
import { ROLLOUT_PURPOSES } from './jobs.ts';
import { KL_CONTROLLER_NAMES, KL_TYPES, PF_PPO_METHODS, SPO_RHOS } from '../rl/names.ts';
import type { ScoringSettings, Stage, StageTypes } from './jobs.ts';
import { engineFacts } from './engine-facts.ts';
import type { Same } from './same-type.ts';
import { endpointLimits } from './permits.ts';

const count = z.int().nonnegative();
const some = z.int().positive();
const seed = z.tuple([z.int(), z.int()]);
const draws = z.array(z.strictObject({ draw: count, row: count }));
const generation = count.optional();

const engineName = engineFacts.shape.name;

const engine = z.strictObject({
  engine: engineName,
  compute: z.enum(['auto', 'fp32', 'bf16']),
  deterministic: z.boolean(),
  maxTokensPerMicroBatch: some,
  blockHash: blockHash,
});

const sampling = z.strictObject({
  temperature: z.number().nonnegative(),
  topK: z.int(),
  topP: z.number(),
  minP: z.number(),
  repetitionPenalty: z.number(),
});

const schedule = z.strictObject({
  type: z.enum(LR_SCHEDULERS),
  lr: z.number(),
  warmupSteps: z.int(),
  totalSteps: z.int(),
  minLrRatio: z.number().optional(),
  numCycles: z.number().optional(),
  initLrRatio: z.number().optional(),
  zeroIndexedStep: z.boolean().optional(),
  stableRatio: z.number().optional(),
});

const klInReward = z.strictObject({
  penalty: z.enum(KL_TYPES),
  control: z.strictObject({
    type: z.enum(KL_CONTROLLER_NAMES),
    klCoef: z.number(),
    targetKl: z.number().optional(),
    horizon: z.number().positive().optional(),
  }),
});

/** How a component beside the policy is trained. */
const trainedBeside = z.strictObject({ loss: lossSettings, optimizer: optimizerSettings, schedule });

const algorithm = z.strictObject({
  seed,
  samplesPerDraw: some,
  advEstimator: z.string(),
  normAdvByStd: z.boolean(),
  gamma: z.number().optional(),
  lam: z.number().optional(),
  vapo: z.strictObject({ alpha: z.number(), lamCritic: z.number() }).optional(),
  overlong: z.strictObject({ limit: some, buffer: some, factor: z.number().nonnegative() }).optional(),
  components: z.strictObject({ keys: z.array(z.string()), weights: z.array(z.number()).optional() }).optional(),
  klInReward: klInReward.optional(),
  rolloutCorrection: rolloutCorrectionSettings.optional(),
  bypass: z.boolean().optional(),
  modelScores: z.strictObject({ weight: z.number(), scorerWeight: z.number() }).optional(),
  maxFailedFraction: z.number(),
  filterGroups: z.strictObject({ metric: z.string(), prompts: some }).optional(),
  oversampling: z
    .strictObject({
      prompts: some,
      accuracy: z.strictObject({ lowest: z.number(), highest: z.number() }).optional(),
      maxResponseLength: some.optional(),
    })
    .optional(),
  curriculum: z.strictObject({ metric: z.string() }).optional(),
  spo: z.strictObject({ rho: z.enum(SPO_RHOS), value: z.number(), lowest: z.number() }).optional(),
  pfPpo: z.strictObject({ reweightMethod: z.enum(PF_PPO_METHODS), weightPow: z.number() }).optional(),
  miniBatchPrompts: some,
  epochs: some,
  shuffle: z.boolean(),
  maxTokensPerMicroBatch: some,
  sequencesPerMicroBatch: some.optional(),
  maxTokensOfReference: some.optional(),
  layout: batchLayout.optional(),
  maxResponseLength: some,
  loss: lossSettings,
  optimizer: optimizerSettings,
  schedule,
  criticWarmup: some.optional(),
  critic: trainedBeside.optional(),
  logZ: trainedBeside.optional(),
  rewardModel: trainedBeside.optional(),
});

const endpoint = z.strictObject({
  url: z.string().optional(),
  model: z.string().optional(),
  apiKey: z.string().startsWith('env:').optional(),
  limits: endpointLimits,
  tokensPerRequest: count,
  retries: count,
  timeoutMs: z.number().positive(),
  question: z
    .strictObject({
      system: z.string().optional(),
      template: z.string(),
      sampling: z.record(z.string(), z.unknown()),
      score: z.union([z.strictObject({ pattern: z.string() }), z.strictObject({ field: z.string() })]),
    })
    .optional(),
  range: z.tuple([z.number(), z.number()]).optional(),
});

/** The components that a job works on; absent: only the actor. */
const components = z.array(z.string()).optional();
/** The run has others, which have jobs of their own. */
const part = z.literal(true).optional();

const batch = {
  generation,
  components,
  part,
  kind: z.enum(RUN_KINDS),
  iteration: some,
  parentState: digest,
  weights: digest,
  inputs: runInputs,
  profile: numericProfile,
  draws,
  parts: z.array(
    z.strictObject({
      trajectories: digest,
      scores: digest,
      wave: some.optional(),
      baseline: z.strictObject({ trajectories: digest, scores: digest }).optional(),
    }),
  ),
  before: counters,
  cursorAfter: count,
  algorithm,
};

const scoring = z.strictObject({
  model: digest,
  dataset: digest,
  scorer: runInputs.shape.scorer.unwrap(),
  settings: z.record(z.string(), z.unknown()),
  timeoutMs: z.number().positive(),
  memoryMb: some,
  concurrency: some,
  sandbox: z.literal(true).optional(),
  lists: z.literal(true).optional(),
  deterministic: z.boolean(),
  endpoint: endpoint.optional(),
  components: z.array(z.string()).optional(),
});

const inputs = {
  open: z.strictObject({
    generation,
    components,
    part,
    model: digest,
    engine,
    from: z.strictObject({ runId: z.string(), iteration: count, state: digest }).optional(),
  }),
  rollout: z.strictObject({
    generation,
    purpose: z.enum(ROLLOUT_PURPOSES),
    sampler: engineName,
    model: digest,
    dataset: digest,
    weights: digest,
    profile: numericProfile,
    draws,
    samplesPerDraw: some,
    firstSample: count.optional(),
    sampling,
    maxNewTokens: some,
    maxSequences: some,
    stopStrings: z.array(z.string()),
    seed,
  }),
  reward: scoring.extend({ generation, trajectories: digest, again: count.optional() }),
  values: z.strictObject({ ...batch, partState: digest }),
  advantage: z.strictObject({ ...batch, partState: digest.optional(), values: digest.optional() }),
  update: z.strictObject({
    generation,
    components,
    part,
    parentState: digest,
    batch: digest,
    model: digest,
    profile: numericProfile,
    save: z.boolean(),
    standby: z.literal(true).optional(),
  }),
  checkpoint: z.strictObject({
    generation,
    components,
    part,
    iteration: count,
    state: digest,
    model: digest,
    profile: numericProfile,
  }),
  weights: z.strictObject({
    generation,
    components,
    part,
    weights: digest,
    publication: publication.optional(),
    state: digest,
    model: digest,
    profile: numericProfile,
  }),
  compare: z.strictObject({
    generation,
    components,
    part,
    kind: z.enum(['dpo', 'rm']),
    position: count,
    state: digest,
    model: digest,
    reference: digest,
    profile: numericProfile,
    dataset: digest,
    rows: some,
    beta: z.number(),
    maxTokensPerMicroBatch: some,
  }),
} as const satisfies Record<Stage, z.ZodType>;

/**
 * Does not compile when a schema and the type of its stage have different fields. An unknown field is refused, so that
 * a field which only one of the two builds knows cannot be lost in silence.
 */
const drifted: { readonly [S in Stage]: Same<z.infer<(typeof inputs)[S]>, StageTypes[S]['input']> } = {
  open: true,
  rollout: true,
  reward: true,
  values: true,
  advantage: true,
  update: true,
  checkpoint: true,
  weights: true,
  compare: true,
};
void drifted;

/** Throws InvalidInputError with the name of the first invalid field. */
export function checkJobInput(stage: Stage, input: unknown): void {
  const parsed = inputs[stage].safeParse(input);
  if (parsed.success) return;
  const [issue] = parsed.error.issues;
  const unknown = issue?.code === 'unrecognized_keys' ? issue.keys.slice(0, 1) : [];
  const field = [...(issue?.path ?? []), ...unknown].map(String).join('.') || 'the input';
  throw new InvalidInputError(
    `a job of the stage ${stage} has a wrong ${field}: ${issue?.message ?? 'it is no input'}`,
    {
      hint: 'the worker and the control process may run different builds; petrel up replaces them',
    },
  );
}

/** Does what `checkJobInput` does; returns the input of a scoring job. */
export function rewardInput(input: unknown): StageTypes['reward']['input'] {
  checkJobInput('reward', input);
  return input as StageTypes['reward']['input'];
}

/** How finished samples are scored, from a message; undefined when it is not that. */
export function scoringSettings(value: unknown): ScoringSettings | undefined {
  return scoring.safeParse(value).success ? (value as ScoringSettings) : undefined;
}
