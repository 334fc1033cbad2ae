/** Registry of advantage estimators, key `algorithm.adv_estimator`. An estimator is one file and one line here. */
import { InvalidInputError } from '../../errors.ts';
import { ADVANTAGE_NAMES, type AdvantageName } from '../names.ts';
import { gae } from './gae.ts';
import { gdpo } from './gdpo.ts';
import { gigpo } from './gigpo.ts';
import { gpg } from './gpg.ts';
import { grpoPassk } from './grpo-passk.ts';
import { grpo, grpoVectorized } from './grpo.ts';
import { optimalTokenBaseline, tirOptimalTokenBaseline } from './optimal-token-baseline.ts';
import { opo } from './opo.ts';
import { prime } from './prime.ts';
import { reinforcePlusPlusBaseline } from './reinforce-plus-plus-baseline.ts';
import { reinforcePlusPlus } from './reinforce-plus-plus.ts';
import { remax } from './remax.ts';
import { rloo, rlooVectorized } from './rloo.ts';
import { spo } from './spo.ts';
import { sppo } from './sppo.ts';
import type { AdvantageEstimator } from './types.ts';
import { vapo } from './vapo.ts';

export type { AdvantageBatch, AdvantageConfig, AdvantageEstimator, Advantages } from './types.ts';

const ESTIMATORS: Readonly<Record<AdvantageName, AdvantageEstimator>> = {
  gae,
  grpo,
  grpo_vectorized: grpoVectorized,
  grpo_passk: grpoPassk,
  gdpo,
  rloo,
  rloo_vectorized: rlooVectorized,
  opo,
  gpg,
  reinforce_plus_plus: reinforcePlusPlus,
  reinforce_plus_plus_baseline: reinforcePlusPlusBaseline,
  remax,
  optimal_token_baseline: optimalTokenBaseline,
  tir_optimal_token_baseline: tirOptimalTokenBaseline,
  vapo,
  prime,
  spo,
  sppo,
  gigpo,
};

/** @throws InvalidInputError with the known estimators. */
export function advantageEstimator(name: string): AdvantageEstimator {
  const found = Object.hasOwn(ESTIMATORS, name) ? ESTIMATORS[name as AdvantageName] : undefined;
  if (found === undefined) {
    throw new InvalidInputError(`unknown adv_estimator "${name}"`, { hint: `one of ${ADVANTAGE_NAMES.join(', ')}` });
  }
  return found;
}
