/** The losses through which each batch goes, and the settings of petrel's that are the other side's. */
import { InvalidInputError } from '../../../core/errors.ts';
import type { LossSettings } from '../../../core/records/schema.ts';

export const comparisons = ['grpo', 'rloo', 'ppo', 'value'] as const;
/** `grpo` and `rloo`: TRL's trainer; `ppo` and `value`: plain torch. */
export type Comparison = (typeof comparisons)[number];

export const otherSide: Readonly<Record<Comparison, string>> = {
  grpo: 'TRL GRPO',
  rloo: 'TRL RLOO',
  ppo: 'torch PPO',
  value: 'torch value',
};

/** A bound that no ratio reaches. */
const noDualClip = 1e9;

/** petrel's settings of the policy loss that the other side computes. */
export function settingsFor(comparison: Comparison, recorded: LossSettings): LossSettings {
  if (comparison === 'grpo') return { ...recorded, lossMode: 'vanilla', clipRatioC: noDualClip };
  // TRL's RLOO has its KL in the reward, no entropy bonus, and a mean over responses.
  if (comparison === 'rloo')
    return { ...recorded, lossAggMode: 'seq-mean-token-sum', entropyCoeff: 0, useKlLoss: false };
  return recorded;
}

/** TRL's `loss_type` of an aggregation. Throws InvalidInputError for one that TRL lacks. */
export function trlLossType(mode: string): string {
  const types: Readonly<Record<string, string>> = {
    'token-mean': 'dapo',
    'seq-mean-token-mean': 'grpo',
    'seq-mean-token-sum': 'luspo',
    'seq-mean-token-sum-norm': 'dr_grpo',
  };
  const type = types[mode];
  if (type === undefined) throw new InvalidInputError(`TRL has no loss_type for loss_agg_mode ${mode}`);
  return type;
}
