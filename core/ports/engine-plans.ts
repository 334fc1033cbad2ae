/**
 * The part of an engine that runs nothing: what it says of a model, and of the memory that a process of a run takes on
 * each device. `petrel plan` and the checks at a run's start ask it where no worker runs yet.
 */
import type { Division } from '../division.ts';
import type { ComputeType } from '../parameters.ts';
import type { ModelRef } from './engines.ts';
import type { SamplerRoom } from './sampler.ts';

/** What an engine reads from a model's config. */
export interface ModelFacts {
  /** The family's name, for messages. */
  readonly family: string;
  readonly layers: number;
  /** Elements of all parameters; undefined: the engine knows only when it has loaded the model. */
  readonly parameters?: number;
  /** Tokens that the model knows. */
  readonly vocab: number;
  /** Longest context that the model declares. */
  readonly maxPositions: number;
}

/** What one process of a run is to hold and to do. Every model but the teacher has the policy's shape. */
export interface ProcessWanted {
  readonly model: ModelRef;
  readonly compute: ComputeType;
  /** Models that learn: 1 for a policy alone, 2 with a critic. 0: the process trains nothing. */
  readonly trained: number;
  /** Models beside them that only give log-probs or scores. */
  readonly frozen: number;
  /** Ranks over which each model is divided; engines that do not divide models take no notice. */
  readonly ranks: number;
  /** How the ranks share it beside that. */
  readonly division?: Division | undefined;
  /** What learns is a low-rank adapter, and the model stays as it is. */
  readonly adapter?: AdapterWanted | undefined;
  readonly teacher?: ModelRef | undefined;
  /** Tokens of one forward and backward pass. */
  readonly tokens: number;
  /** Samples that are decoded at once. Absent: the process samples nothing. */
  readonly sampling?: SamplerRoom | undefined;
  /** Cards over which a sampler divides its model. Absent: one. */
  readonly tensorParallel?: number | undefined;
  /** Bytes of this machine's memory. */
  readonly machineBytes: number;
  /** Bytes of each of the machine's cards. Absent: the processor computes. */
  readonly cardBytes?: number | undefined;
  /** Number of these cards. Absent: not known, at least one. */
  readonly cards?: number | undefined;
}

/** Which layers get an adapter, of which rank: `model.target_modules` and `model.lora_rank` of a recipe. */
export interface AdapterWanted {
  readonly rank: number;
  readonly targets: string | readonly string[];
}

/** Memory of one process on one device. */
export interface DevicePlan {
  /** `memory`: the machine's own. `card 0`, `card 1` …: its accelerators. */
  readonly device: string;
  /** Bytes by what they hold, at the moment at which they are most. */
  readonly parts: Readonly<Record<string, number>>;
}

/** The device of the machine's own memory, and those of its cards. */
export const ownMemory = 'memory';
export const cardName = (index: number): string => `card ${index}`;

/** Parts that do not depend on what is computed: with less memory than these a process cannot run. */
export const partsOfModels: readonly string[] = [
  'weights',
  'copies',
  'gradients',
  'moments',
  'critic',
  'reference',
  'teacher',
];

export interface EnginePlans {
  /**
   * Throws InvalidInputError for a model that the engine cannot run, or not divided so, with the field and what it
   * supports.
   */
  readModel(model: ModelRef, division?: Division): Promise<ModelFacts>;
  /**
   * Compares the stored tensors with those that the model needs, and loads none. Throws InvalidInputError with the
   * tensor, the expected and the found value. Absent: the engine finds out when it loads them.
   */
  checkWeights?(model: ModelRef): Promise<void>;
  /** One entry for each device that the process would use. Absent: the engine finds out when it runs. */
  plan?(wanted: ProcessWanted): Promise<readonly DevicePlan[]>;
}
