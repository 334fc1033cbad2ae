/**
 * Jobs: the input that a stage sends to a worker, and the output. A job's id is its stage and the digest of its input.
 * So an input contains nothing that could differ between two callers that need the same result: no run, term, path,
 * time or attempt.
 */
import type { RunKind } from '../run-kinds.ts';
import type { Role } from '../roles.ts';
import type {
  BatchLayout,
  CheckpointManifest,
  ComponentState,
  Counters,
  DrawRecord,
  LossSettings,
  NumericProfile,
  OptimizerSettings,
  RolloutCorrectionSettings,
  RunInputs,
  UpdateRecord,
} from '../records/schema.ts';
import type { NamesBlockHash } from '../records/block-hash.ts';
import type { Components } from '../records/components.ts';
import type { Publication } from '../records/publications.ts';
import type { EndpointSettings } from '../endpoint.ts';
import type { Digest } from '../ids.ts';
import type { SamplingSettings } from '../ports/sampler.ts';
import type { KlControl } from '../rl/kl-controllers.ts';
import type { LrSchedule } from '../rl/lr-schedule.ts';
import type { PfPpoMethod, SpoRho } from '../rl/names.ts';
import type { OverlongBuffer } from '../rl/overlong.ts';

/**
 * A result object is never overwritten. When it is damaged, or a blob that it names is lost, the job runs again with
 * the next generation number, and so with another job id. Everyone who finds the same damage derives the same id.
 * Absent: 0.
 */
export interface Recomputable {
  readonly generation?: number;
}

/** The engine that a run needs: what its numeric profile is made from. */
export interface EngineSettings extends NamesBlockHash {
  /** Name of the engine that trains: `trainer.engine`. */
  readonly engine: string;
  readonly compute: 'auto' | 'fp32' | 'bf16';
  readonly deterministic: boolean;
  readonly maxTokensPerMicroBatch: number;
}

/** The components that a job works on. Absent: only the actor. */
export interface Trains {
  readonly components?: readonly string[];
  /**
   * The run is divided: these are not all of its components, and the others have jobs of their own, which another
   * trainer can take. A state in the input and the output is then that of these components. Absent: the run is not
   * divided.
   */
  readonly part?: true;
}

/** Loads the base model and returns its digests: state 0 of the log. */
export interface OpenInput extends Recomputable, Trains {
  readonly model: Digest;
  readonly engine: EngineSettings;
  /**
   * State of another run with which a fork starts instead of the base; it is saved as the new run's first checkpoint.
   */
  readonly from?: { readonly runId: string; readonly iteration: number; readonly state: Digest };
}
export interface OpenOutput {
  /** Digest of all components of the job. */
  readonly stateDigest: Digest;
  readonly components: Components<ComponentState & { readonly profile: NumericProfile }>;
  /** Shards of a fork that is divided, instead of the checkpoint: CheckpointOutput. */
  readonly shards?: Digest;
}

/** `baseline`: the greedy response to each prompt of a training job, with which `remax` compares. */
export const ROLLOUT_PURPOSES = ['train', 'baseline', 'validate'] as const;
export type RolloutPurpose = (typeof ROLLOUT_PURPOSES)[number];

/** Samples responses for some draws from exactly these weights. */
export interface RolloutInput extends Recomputable {
  readonly purpose: RolloutPurpose;
  /** Name of the engine that samples: `rollout.name`. */
  readonly sampler: string;
  readonly model: Digest;
  readonly dataset: Digest;
  readonly weights: Digest;
  readonly profile: NumericProfile;
  readonly draws: readonly { readonly draw: number; readonly row: number }[];
  readonly samplesPerDraw: number;
  /** Number of each draw's first sample; not 0 in a part of a larger job. */
  readonly firstSample?: number;
  readonly sampling: SamplingSettings;
  readonly maxNewTokens: number;
  readonly maxSequences: number;
  readonly stopStrings: readonly string[];
  readonly seed: readonly [number, number];
}
export interface RolloutOutput {
  /** safetensors of the trajectories: FORMAT.md, "Trajectory tensors". */
  readonly trajectories: Digest;
  readonly samples: number;
  readonly promptTokens: number;
  readonly responseTokens: number;
}

/** How samples are scored: the part of a reward job's input that is known before the samples are. */
export interface ScoringSettings {
  readonly model: Digest;
  readonly dataset: Digest;
  readonly scorer: NonNullable<RunInputs['scorer']>;
  readonly settings: Readonly<Record<string, unknown>>;
  readonly timeoutMs: number;
  readonly memoryMb: number;
  readonly concurrency: number;
  /** The user's scorer runs in a sandbox. */
  readonly sandbox?: true;
  /** A call of the user's scorer gets all responses to a prompt, as lists. Absent: one response. */
  readonly lists?: true;
  /** Only the sample decides its score, so a timeout of the scorer does not count as a failed sample. */
  readonly deterministic: boolean;
  /** What the scorer asks, or how often it may be called. Absent: no endpoint and no limits. */
  readonly endpoint?: EndpointSettings;
  /** Numbers that every result of the scorer must have. Absent: none. */
  readonly components?: readonly string[];
}

/** Scores every sample of a trajectories object. */
export interface RewardInput extends Recomputable, ScoringSettings {
  readonly trajectories: Digest;
  /** How many times a resume has asked for the scores again, after too many samples had failed. */
  readonly again?: number;
}
export interface RewardOutput {
  /** JSON blob: ScoreTable. */
  readonly scores: Digest;
  readonly failed: number;
}

/** Scored trajectories of some draws. */
export interface ScoredSamples {
  readonly trajectories: Digest;
  readonly scores: Digest;
  /** Wave in which the draws were sampled; absent: 0. */
  readonly wave?: number;
  /** Greedy responses to the same draws, one each. */
  readonly baseline?: { readonly trajectories: Digest; readonly scores: Digest };
}

/** Turns scored trajectories (RL) or dataset rows (SFT) into a closed batch. */
export interface AdvantageInput extends Recomputable, Trains {
  readonly kind: RunKind;
  readonly iteration: number;
  readonly parentState: Digest;
  readonly weights: Digest;
  readonly inputs: RunInputs;
  readonly profile: NumericProfile;
  readonly draws: readonly { readonly draw: number; readonly row: number }[];
  /** Scored samples in draw order. Empty where responses come with the rows. */
  readonly parts: readonly ScoredSamples[];
  readonly before: Counters;
  readonly cursorAfter: number;
  readonly algorithm: AlgorithmSettings;
  /** State of the job's components, when the run is divided. `parentState` is always the run's. */
  readonly partState?: Digest;
  /** The critic's values, where another job makes them: ValuesOutput. */
  readonly values?: Digest;
}

/**
 * The critic's values of the batch that the advantage job will make, where the critic is trained by jobs of its own.
 */
export type ValuesInput = Omit<AdvantageInput, 'values'> & Required<Pick<AdvantageInput, 'partState'>>;
export interface ValuesOutput {
  /** safetensors of a value for each token: FORMAT.md, "Values". */
  readonly values: Digest;
}

/** The part of a recipe that determines how a batch is made from samples. */
export interface AlgorithmSettings {
  readonly seed: readonly [number, number];
  readonly samplesPerDraw: number;
  readonly advEstimator: string;
  readonly normAdvByStd: boolean;
  /** Absent: 1. */
  readonly gamma?: number;
  /** Absent: 1. */
  readonly lam?: number;
  /** Settings that differ from the defaults of core/rl/advantages/vapo.ts. */
  readonly vapo?: { readonly alpha: number; readonly lamCritic: number };
  /** The penalty for long responses. Absent: none. */
  readonly overlong?: OverlongBuffer;
  /** Scores by name, as columns of the score tables. Absent: only the score. */
  readonly components?: ScoreComponents;
  /** Absent: the reward is the score. */
  readonly klInReward?: KlInRewardSettings;
  /** Importance weights and rejection by old log-probs. Absent: none. */
  readonly rolloutCorrection?: RolloutCorrectionSettings;
  /** The log-probs of the rollout are the old ones. Absent: they are computed. */
  readonly bypass?: boolean;
  /** How a reward model's score and the scorer's become the reward. Absent: there is no reward model. */
  readonly modelScores?: { readonly weight: number; readonly scorerWeight: number };
  readonly maxFailedFraction: number;
  /** Dynamic sampling: only groups whose samples differ in a metric are trained on, and of these the first ones. */
  readonly filterGroups?: { readonly metric: string; readonly prompts: number };
  /** Oversampling: of all groups so many are trained on, first those that pass (core/rl/prime-filter.ts). */
  readonly oversampling?: {
    readonly prompts: number;
    readonly accuracy?: { readonly lowest: number; readonly highest: number };
    readonly maxResponseLength?: number;
  };
  /** What a curriculum remembers of each row. */
  readonly curriculum?: { readonly metric: string };
  /** How much the past of a prompt counts for the estimator spo: by how far the policy has moved (kl), or `value`. */
  readonly spo?: { readonly rho: SpoRho; readonly value: number; readonly lowest: number };
  /** Policy filtration: the batch is trained on after it was drawn again by its scores (core/rl/pf-ppo.ts). */
  readonly pfPpo?: { readonly reweightMethod: PfPpoMethod; readonly weightPow: number };
  readonly miniBatchPrompts: number;
  readonly epochs: number;
  readonly shuffle: boolean;
  readonly maxTokensPerMicroBatch: number;
  /** A micro-batch has at most so many sequences. Absent: as many as its tokens allow. */
  readonly sequencesPerMicroBatch?: number;
  /** Tokens of one forward pass of the reference. Absent: as the policy's. */
  readonly maxTokensOfReference?: number;
  /** Absent: flat. */
  readonly layout?: BatchLayout;
  readonly maxResponseLength: number;
  readonly loss: LossSettings;
  readonly optimizer: OptimizerSettings;
  readonly schedule: ScheduleSettings;
  /** The policy is trained from this iteration on, and before it only the critic. Absent: from the first. */
  readonly criticWarmup?: number;
  /** How the value model is trained. */
  readonly critic?: TrainedBeside;
  /** How the model of log Z of the loss flowrl is trained. */
  readonly logZ?: TrainedBeside;
  /** How the implicit reward model of PRIME is trained. */
  readonly rewardModel?: TrainedBeside;
}

/** How a component beside the policy is trained. */
export interface TrainedBeside {
  readonly loss: LossSettings;
  readonly optimizer: OptimizerSettings;
  readonly schedule: ScheduleSettings;
}

/** Scores that are normalised by themselves and added up. */
export interface ScoreComponents {
  readonly keys: readonly string[];
  /** Absent: 1 each. */
  readonly weights?: readonly number[];
}

/** The KL penalty in the reward; its coefficient after the first batch is `controllers.klCoef` of the counters. */
export interface KlInRewardSettings {
  /** Estimator of the KL divergence: core/rl/kl.ts. */
  readonly penalty: string;
  readonly control: KlControl;
}

/** The learning-rate schedule over optimiser steps, with its base rate. */
export interface ScheduleSettings extends LrSchedule {
  readonly lr: number;
}

/** How a component is trained on a batch. */
export interface BatchComponent {
  /** Learning rate of each optimiser step. */
  readonly learningRates: readonly number[];
  readonly loss: LossSettings;
  readonly optimizer: OptimizerSettings;
}

export interface AdvantageOutput {
  readonly tensors: Digest;
  readonly oldLogProbs: 'stored' | 'on-policy';
  /** Absent: flat. */
  readonly layout?: BatchLayout;
  readonly components: Components<BatchComponent>;
  readonly draws: readonly DrawRecord[];
  readonly after: Counters;
  readonly metrics: Readonly<Record<string, number | 'NaN' | 'Infinity' | '-Infinity'>>;
  /** The values that it was given: their blob is removed with those of the batch. */
  readonly values?: Digest;
}

/** A component's new state, and how it came to it. */
export type UpdatedComponent = UpdateRecord['components'][string];

/** Applies one batch record to its parent state. */
export interface UpdateInput extends Recomputable, Trains {
  readonly parentState: Digest;
  readonly batch: Digest;
  readonly model: Digest;
  readonly profile: NumericProfile;
  /** A checkpoint is due: the new state is copied at once and written while the next stages run. */
  readonly save: boolean;
  /** The same update on the run's standby (`trainer.standby`), which keeps a second copy of the state. */
  readonly standby?: true;
}
export interface UpdateOutput {
  readonly outcome: 'applied' | 'skipped';
  readonly reason?: string;
  /** Digest of all components of the job. */
  readonly stateDigest: Digest;
  readonly components: Components<UpdatedComponent>;
  readonly after: Counters;
  readonly metrics: Readonly<Record<string, number | 'NaN' | 'Infinity' | '-Infinity'>>;
}

/** Writes the state at a position as a verified checkpoint. */
export interface CheckpointInput extends Recomputable, Trains {
  /** A skipped update does not change the state, so two positions may have the same state and separate checkpoints. */
  readonly iteration: number;
  readonly state: Digest;
  readonly model: Digest;
  readonly profile: NumericProfile;
}
export interface CheckpointOutput {
  /** Key of the manifest; absent where the run is divided. */
  readonly manifest?: string;
  /** JSON blob of a run that is divided, PartOfCheckpoint. The manifest is written when there is one of each part. */
  readonly shards?: Digest;
}
/** What a manifest says of some components. */
export interface PartOfCheckpoint {
  readonly iteration: number;
  readonly components: CheckpointManifest['components'];
}

/** Writes weights for rollout workers outside the trainer's process. */
export interface WeightsInput extends Recomputable, Trains {
  readonly weights: Digest;
  /** Absent: the fp32 values. */
  readonly publication?: Publication | undefined;
  readonly state: Digest;
  readonly model: Digest;
  readonly profile: NumericProfile;
}
export interface WeightsOutput {
  readonly manifest: string;
}

/** Compares the two responses of each row with the model at a position: kinds dpo and rm. */
export interface CompareInput extends Recomputable, Trains {
  readonly kind: 'dpo' | 'rm';
  readonly position: number;
  readonly state: Digest;
  readonly model: Digest;
  /** The policy that the trained one is held against; dpo only. */
  readonly reference: Digest;
  readonly profile: NumericProfile;
  readonly dataset: Digest;
  readonly rows: number;
  readonly beta: number;
  readonly maxTokensPerMicroBatch: number;
}
export interface CompareOutput {
  /** JSON blob: ScoreTable with one entry for each pair: 1 where the chosen response is preferred. */
  readonly scores: Digest;
  readonly pairs: number;
}

export interface StageTypes {
  open: { input: OpenInput; output: OpenOutput };
  rollout: { input: RolloutInput; output: RolloutOutput };
  reward: { input: RewardInput; output: RewardOutput };
  values: { input: ValuesInput; output: ValuesOutput };
  advantage: { input: AdvantageInput; output: AdvantageOutput };
  update: { input: UpdateInput; output: UpdateOutput };
  checkpoint: { input: CheckpointInput; output: CheckpointOutput };
  weights: { input: WeightsInput; output: WeightsOutput };
  compare: { input: CompareInput; output: CompareOutput };
}
export type Stage = keyof StageTypes;

/** Which role does a stage; a role's jobs share one work queue. */
export const roleOfStage: Readonly<Record<Stage, Role>> = {
  open: 'trainer',
  values: 'trainer',
  advantage: 'trainer',
  update: 'trainer',
  checkpoint: 'trainer',
  weights: 'trainer',
  compare: 'trainer',
  rollout: 'rollout',
  reward: 'reward',
};
