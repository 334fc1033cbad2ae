import { POLICY_LOSS_NAMES } from '../../../core/rl/names.ts';
import { policyLoss, type PolicyLossConfig, type PolicyLossInput } from '../../../core/rl/policy-loss/index.ts';
import { parseRolloutCorrection } from '../../../core/rl/rollout-correction/options.ts';
import { pureEvaluator } from '../evaluators.ts';
import { flatten, inputsOf, maskedRows, numbers, paramsOf, unflatten } from '../padded.ts';
import { torchTopk } from '../torch-topk.ts';
import { aggMode, totalsOf } from './losses.ts';
import type { GoldenCase, Outcome } from '../types.ts';

export const policyLosses = pureEvaluator(
  'policy_loss',
  Object.fromEntries(POLICY_LOSS_NAMES.map((name) => [name, (testCase: GoldenCase) => evaluateLoss(name, testCase)])),
);

function evaluateLoss(name: string, testCase: GoldenCase): Outcome {
  const inputs = inputsOf(testCase);
  const rows = maskedRows(inputs.get('response_mask'));
  const oldLogProb_T = flatten(inputs.get('old_log_prob'));
  const input: PolicyLossInput = {
    rows,
    logProb_T: flatten(inputs.get('log_prob')),
    oldLogProb_T,
    // In `bypass_mode` the reference passes the rollout's log-probs under the name of the old ones.
    rolloutLogProb_T: oldLogProb_T,
    advantages_T: flatten(inputs.get('advantages')),
    rolloutIsWeights_T: inputs.has('rollout_is_weights') ? flatten(inputs.get('rollout_is_weights')) : undefined,
  };
  const config = { ...policyLossConfig(testCase.params), choices: recordedChoices(testCase) };
  const { loss, metrics, dLogProb_T } = policyLoss(name).compute(input, config);
  return { loss, metrics, grad_log_prob: unflatten(dLogProb_T, rows) };
}

/** The random order that the reference drew, and its order among equal covariances. */
function recordedChoices(testCase: GoldenCase): PolicyLossConfig['choices'] {
  const inputs = inputsOf(testCase);
  const order = inputs.has('perm') ? numbers(inputs.get('perm')) : [];
  return {
    permutation: (size) => {
      if (order.length !== size) throw new Error(`the reference had ${order.length} candidates, here are ${size}`);
      return order;
    },
    largest: torchTopk,
  };
}

/** verl's defaults for parameters that a case does not give. */
export function policyLossConfig(params: GoldenCase['params']): PolicyLossConfig {
  const given = paramsOf({ name: '', inputs: {}, params: params ?? {} });
  return {
    lossAggMode: aggMode(given.has('loss_agg_mode') ? given.string('loss_agg_mode') : 'token-mean'),
    totals: totalsOf(given.get('global_batch_info')),
    clipRatio: given.optionalNumber('clip_ratio') ?? 0.2,
    clipRatioLow: given.optionalNumber('clip_ratio_low'),
    clipRatioHigh: given.optionalNumber('clip_ratio_high'),
    clipRatioC: given.optionalNumber('clip_ratio_c') ?? 3,
    tauPos: given.optionalNumber('tau_pos'),
    tauNeg: given.optionalNumber('tau_neg'),
    clipCovRatio: given.optionalNumber('clip_cov_ratio'),
    clipCovLb: given.optionalNumber('clip_cov_lb'),
    clipCovUb: given.optionalNumber('clip_cov_ub'),
    klCovRatio: given.optionalNumber('kl_cov_ratio'),
    ppoKlCoef: given.optionalNumber('ppo_kl_coef'),
    droBeta: given.optionalNumber('dro_beta'),
    rolloutCorrection: given.has('rollout_correction')
      ? parseRolloutCorrection(given.get('rollout_correction') as object)
      : undefined,
  };
}
