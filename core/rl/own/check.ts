/**
 * Tries a module of the user's own before a run uses it: on small random batches its results must have the right form
 * and be the same twice, and the gradient of a loss is compared with central differences that hold all detached
 * quantities fixed. Places within a kink of the loss (a clip, a max) have no derivative and are left out;
 * finite-difference.ts.
 */
import { InvalidInputError } from '../../errors.ts';
import { numericGradient } from '../finite-difference.ts';
import type { PolicyLossConfig, PolicyLossResult } from '../policy-loss/types.ts';
import { ownAdvantages, ownEstimatorCall } from './estimator.ts';
import type { OwnEstimatorCall } from './estimator.ts';
import { ownLossCall, ownLossResult } from './loss.ts';
import type { OwnLossCall } from './loss.ts';
import { trialAdvantageBatch, trialBatches, trialLossInput } from './trial-batch.ts';
import type { OwnAdvantageEstimator, OwnPolicyLoss } from './types.ts';

/** Relative to 1 + the size of the derivative by one token, times the number of valid tokens. */
const tolerance = 1e-5;

/** The place where the gradient differs most from the finite difference. */
export interface GradientDifference {
  readonly difference: number;
  readonly batch: number;
  readonly token: number;
  readonly given: number;
  readonly numeric: number;
}

export interface GradientReport {
  readonly batches: number;
  /** Tokens of all batches, with those outside of the mask, of which the loss must not depend. */
  readonly tokens: number;
  /** Left out: the loss has no derivative there. */
  readonly kinks: number;
  /** Tokens where both differ by more than rounding. */
  readonly disagreeing: number;
  readonly largest: GradientDifference;
}

export type TrialSettings = Pick<PolicyLossConfig, 'lossAggMode' | 'clipRatio' | 'clipRatioLow' | 'clipRatioHigh'> &
  Pick<PolicyLossConfig, 'clipRatioC'>;

/** @throws InvalidInputError for a wrong result; whatever the module throws. It judges no difference. */
export function checkLoss(loss: OwnPolicyLoss, settings: TrialSettings): GradientReport {
  let [tokens, kinks, disagreeing] = [0, 0, 0];
  let largest: GradientDifference = { difference: 0, batch: 0, token: 0, given: 0, numeric: 0 };
  for (let batch = 0; batch < trialBatches; batch++) {
    const { call, valid } = trialCall(loss, settings, batch);
    const result = ownLossResult(loss, call);
    requireSame(result, ownLossResult(loss, call));
    const logProb_T = new Float64Array(call.logProb_T);
    const held = { ...call, detached: { ...call.detached, logProb_T } };
    const numeric_T = numericGradient((x) => valid * ownLossResult(loss, { ...held, logProb_T: x }).loss, logProb_T);
    tokens += numeric_T.length;
    numeric_T.forEach((numeric, token) => {
      const given = valid * (result.dLogProb_T[token] ?? NaN);
      const difference = Math.abs(given - numeric);
      if (Number.isNaN(numeric)) kinks++;
      else if (difference > tolerance * (1 + Math.abs(numeric))) disagreeing++;
      if (difference > largest.difference) largest = { difference, batch, token, given, numeric };
    });
  }
  return { batches: trialBatches, tokens, kinks, disagreeing, largest };
}

function trialCall(loss: OwnPolicyLoss, settings: TrialSettings, batch: number) {
  const { seed, ...input } = trialLossInput(batch);
  const valid = Array.from(input.rows.mask_T).reduce((sum, mask) => sum + mask, 0);
  // The totals of a mini-batch that has more than these rows.
  const totals = { batchNumTokens: valid + 5, globalBatchSize: 7, lossScaleFactor: 4 };
  const call: OwnLossCall = ownLossCall(loss.needs, input, { ...settings, totals, seed });
  return { call, valid };
}

function requireSame(first: PolicyLossResult, second: PolicyLossResult): void {
  const isSame =
    Object.is(first.loss, second.loss) && first.dLogProb_T.every((value, t) => Object.is(value, second.dLogProb_T[t]));
  if (!isSame) throw notTheSame();
}

/** @throws InvalidInputError for a wrong result; whatever the module throws. */
export function checkEstimator(estimator: OwnAdvantageEstimator, config: OwnEstimatorCall['config']) {
  for (let batch = 0; batch < trialBatches; batch++) {
    const call = ownEstimatorCall(estimator.needs, trialAdvantageBatch(batch), config);
    const first = ownAdvantages(estimator, call);
    const second = ownAdvantages(estimator, call);
    if (!first.advantages_T.every((value, t) => Object.is(value, second.advantages_T[t]))) throw notTheSame();
  }
}

const notTheSame = () =>
  new InvalidInputError('compute gives different results for equal inputs', {
    hint: 'a resumed run calls it again and must get the same: use neither Math.random, nor the clock, nor variables that keep their value between calls',
  });
