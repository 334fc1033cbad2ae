/** How the processes of an engine share a model and its work, beside what FSDP2 divides among all, and hold it. */
export interface Division {
  /** Processes that share the tokens of a micro-batch (Ulysses). Absent: one. */
  readonly sequence?: number;
  /** Processes that each have a part of every matrix of a layer. Absent: one. */
  readonly tensor?: number;
  /** Processes among which the experts of a layer are divided. Absent: one. */
  readonly experts?: number;
  /** Weights, gradients and moments lie in the machine's memory, and the optimiser computes there. */
  readonly offload?: boolean;
  /** Weights, gradients and moments are kept in bf16, rounded stochastically by each step. Absent: in fp32. */
  readonly state?: 'bf16';
}

/** The part of `trainer` in a recipe that says how a model is divided. */
export interface DividedTrainer {
  readonly fsdp_size: number;
  readonly ulysses_sequence_parallel_size: number;
  readonly tensor_model_parallel_size: number;
  readonly expert_model_parallel_size: number;
  readonly cpu_offload: boolean;
  readonly state_dtype: 'fp32' | 'bf16';
}

/** Undefined where FSDP2 alone divides. */
export function divisionOf(trainer: DividedTrainer): Division | undefined {
  const { ulysses_sequence_parallel_size: sequence, tensor_model_parallel_size: tensor } = trainer;
  const { expert_model_parallel_size: experts, cpu_offload: offload, state_dtype: state } = trainer;
  const division = {
    ...(sequence > 1 && { sequence }),
    ...(tensor > 1 && { tensor }),
    ...(experts > 1 && { experts }),
    ...(offload && { offload }),
    ...(state === 'bf16' && { state }),
  };
  return Object.keys(division).length === 0 ? undefined : division;
}

/**
 * Has a run that was not trained yet the weights of its model's folder? A state in bf16 has them rounded, and its
 * samplers must get these.
 */
export const beginsAsModel = ({ division }: { readonly division?: Division | undefined }): boolean =>
  division?.state === undefined;

/** A model beside the policy may have no experts: the engine divides them where it has some. */
export function frozenDivision(trainer: DividedTrainer): Division | undefined {
  const { experts: _, ...division } = divisionOf(trainer) ?? {};
  return Object.keys(division).length === 0 ? undefined : division;
}

/** Micro-batches that so many processes compute side by side. */
export const lanesOf = (ranks: number, { sequence = 1, tensor = 1 }: Division = {}): number =>
  ranks / (sequence * tensor);

/** In one line, for names of what must be divided alike. */
export const divisionText = ({ sequence = 1, tensor = 1, experts = 1, offload, state }: Division = {}): string =>
  `${sequence}.${tensor}.${experts}${offload === true ? ' offload' : ''}${state === undefined ? '' : ` ${state}`}`;
