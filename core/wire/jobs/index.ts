/**
 * Jobs: the input that a stage sends to a worker, and the output. A job's id is its stage and the digest of its input.
 * So an input contains nothing that could differ between two callers that need the same result: no run, term, path,
 * time or attempt. To add a stage, write a file and a line in each of the two tables here.
 */
import type { z } from 'zod';
import { InvalidInputError } from '../../errors.ts';
import type { Role } from '../../roles.ts';
import { advantageInput, valuesInput } from './batch.ts';
import type { AdvantageInput, AdvantageOutput, ValuesInput, ValuesOutput } from './batch.ts';
import { compareInput } from './compare.ts';
import type { CompareInput, CompareOutput } from './compare.ts';
import { openInput } from './open.ts';
import type { OpenInput, OpenOutput } from './open.ts';
import { rewardInput } from './reward.ts';
import type { RewardInput, RewardOutput } from './reward.ts';
import { rolloutInput } from './rollout.ts';
import type { RolloutInput, RolloutOutput } from './rollout.ts';
import { checkpointInput, weightsInput } from './saves.ts';
import type { CheckpointInput, CheckpointOutput, WeightsInput, WeightsOutput } from './saves.ts';
import { updateInput } from './update.ts';
import type { UpdateInput, UpdateOutput } from './update.ts';

export type { AlgorithmSettings, KlInRewardSettings, ScheduleSettings, TrainedBeside } from './algorithm.ts';
export type * from './batch.ts';
export { trainerShareOf } from './fields.ts';
export type { TrainerShare, Trains } from './fields.ts';
export type * from './compare.ts';
export type * from './open.ts';
export { isScoringSettings } from './reward.ts';
export type * from './reward.ts';
export type * from './rollout.ts';
export type * from './saves.ts';
export type * from './update.ts';

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

/** `role`: who does it; a role's jobs share one work queue. */
const stages: { readonly [S in Stage]: { readonly role: Role; readonly input: z.ZodType<StageTypes[S]['input']> } } = {
  open: { role: 'trainer', input: openInput },
  rollout: { role: 'rollout', input: rolloutInput },
  reward: { role: 'reward', input: rewardInput },
  values: { role: 'trainer', input: valuesInput },
  advantage: { role: 'trainer', input: advantageInput },
  update: { role: 'trainer', input: updateInput },
  checkpoint: { role: 'trainer', input: checkpointInput },
  weights: { role: 'trainer', input: weightsInput },
  compare: { role: 'trainer', input: compareInput },
};

export const STAGES = Object.keys(stages) as Stage[];

export const roleOf = (stage: Stage): Role => stages[stage].role;

/**
 * The input of a job, as a worker got it. Throws InvalidInputError with the name of the first invalid field. An unknown
 * field is refused, so that a field which only one of two builds knows cannot be lost in silence.
 */
export function jobInput<S extends Stage>(stage: S, input: unknown): StageTypes[S]['input'] {
  const parsed = stages[stage].input.safeParse(input);
  if (parsed.success) return input as StageTypes[S]['input'];
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
