import { POLICY_LOSS_NAMES } from '../../../core/rl/names.ts';
import { policyLoss, type PolicyLossConfig } from '../../../core/rl/policy-loss/index.ts';
import { pureEvaluator } from '../evaluators.ts';
import { flatten, inputsOf, maskedRows, paramsOf, unflatten } from '../padded.ts';
import { aggMode, totalsOf } from './losses.ts';
import type { GoldenCase, Outcome } from '../types.ts';

export const policyLosses = pureEvaluator(
  'policy_loss',
  Object.fromEntries(POLICY_LOSS_NAMES.map((name) => [name, (testCase: GoldenCase) => evaluateLoss(name, testCase)])),
);

function evaluateLoss(name: string, testCase: GoldenCase): Outcome {
  const inputs = inputsOf(testCase);
  const rows = maskedRows(inputs.get('response_mask'));
  const input = {
    rows,
    logProb_T: flatten(inputs.get('log_prob')),
    oldLogProb_T: flatten(inputs.get('old_log_prob')),
    advantages_T: flatten(inputs.get('advantages')),
    rolloutIsWeights_T: inputs.has('rollout_is_weights') ? flatten(inputs.get('rollout_is_weights')) : undefined,
  };
  const { loss, metrics, dLogProb_T } = policyLoss(name).compute(input, policyLossConfig(testCase.params));
  return { loss, metrics, grad_log_prob: unflatten(dLogProb_T, rows) };
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
  };
}
