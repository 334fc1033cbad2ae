import { correctRollout } from '../../../core/rl/rollout-correction/index.ts';
import { parseRejection, parseRolloutCorrection, parseWeights } from '../../../core/rl/rollout-correction/options.ts';
import { rejectTokens } from '../../../core/rl/rollout-correction/rejection.ts';
import { correctionColumns } from '../../../core/rl/rollout-correction/statistics.ts';
import { importanceWeights } from '../../../core/rl/rollout-correction/weights.ts';
import { pureEvaluator } from '../evaluators.ts';
import { flatten, inputsOf, maskedRows, requireSameShape, unflatten } from '../padded.ts';
import type { GoldenCase, Outcome } from '../types.ts';

export const rolloutCorrection = pureEvaluator('losses', {
  rollout_is_weights: weights,
  rollout_rejection: rejection,
  rollout_correction: correction,
});

function weights(testCase: GoldenCase): Outcome {
  const { rollout_is, rollout_is_threshold = 2, rollout_is_batch_normalize } = parameters(testCase);
  const options = parseWeights(rollout_is, rollout_is_threshold, Boolean(rollout_is_batch_normalize));
  const rows = maskedRows(inputsOf(testCase).get('response_mask'));
  const { weights_T, metrics } = importanceWeights(
    correctionColumns(rows, flatten(inputsOf(testCase).get('log_ratio'))),
    options,
  );
  return { rollout_is_weights: unflatten(weights_T, rows), metrics };
}

function rejection(testCase: GoldenCase): Outcome {
  const { rollout_rs, rollout_rs_threshold } = parameters(testCase);
  const rules = parseRejection(rollout_rs, rollout_rs_threshold);
  const rows = maskedRows(inputsOf(testCase).get('response_mask'));
  const { mask_T, metrics } = rejectTokens(
    correctionColumns(rows, flatten(inputsOf(testCase).get('log_ratio'))),
    rules,
  );
  return { response_mask: unflatten(mask_T, rows), metrics };
}

function correction(testCase: GoldenCase): Outcome {
  const inputs = inputsOf(testCase);
  const rows = maskedRows(inputs.get('response_mask'));
  requireSameShape(inputs.get('response_mask'), inputs.get('old_log_probs'), inputs.get('rollout_log_probs'));
  const { rolloutIsWeights_T, mask_T, metrics } = correctRollout(
    rows,
    flatten(inputs.get('old_log_probs')),
    flatten(inputs.get('rollout_log_probs')),
    parseRolloutCorrection(parameters(testCase)),
  );
  return {
    rollout_is_weights: rolloutIsWeights_T === undefined ? null : unflatten(rolloutIsWeights_T, rows),
    response_mask: unflatten(mask_T, rows),
    metrics,
  };
}

/** The parameters with what the files cannot say: that a threshold was a boolean, and Python's digit separators. */
function parameters({ name, params }: GoldenCase) {
  const given: Record<string, unknown> = { ...params };
  if (name.includes('_bool_')) given['rollout_is_threshold'] = Boolean(given['rollout_is_threshold']);
  given['rollout_is_batch_normalize'] = Boolean(given['rollout_is_batch_normalize']);
  for (const key of ['rollout_is_threshold', 'rollout_rs_threshold']) {
    if (typeof given[key] === 'string') given[key] = given[key].split(',').map(pythonNumbers).join(',');
  }
  return given as Readonly<Record<string, unknown>> & { readonly rollout_is_batch_normalize: boolean };
}

/** Python's `float` skips "_" between digits, so after the first "_" of a threshold the others disappear. */
function pythonNumbers(threshold: string): string {
  const [lower = '', ...upper] = threshold.split('_');
  return upper.length > 1 ? `${lower}_${upper.join('')}` : threshold;
}
