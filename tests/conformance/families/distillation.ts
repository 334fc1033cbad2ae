import { categorical } from '../categorical.ts';
import { teacherLoss } from '../../../core/rl/distillation/teacher-loss.ts';
import { forwardKlTopk } from '../../../core/rl/distillation/topk.ts';
import { pureEvaluator } from '../evaluators.ts';
import { flatten, inputsOf, maskedRows, numbers, paramsOf, unflatten } from '../padded.ts';
import { torchTopk } from '../torch-topk.ts';
import { aggMode, totalsOf } from './losses.ts';
import type { GoldenCase, Outcome } from '../types.ts';

export const distillation = pureEvaluator('losses', { distill_estimator: estimator, distill_topk: topk });

function estimator(testCase: GoldenCase): Outcome {
  const [params, inputs] = [paramsOf(testCase), inputsOf(testCase)];
  const rows = maskedRows(inputs.get('response_mask'));
  const { loss, dLogProb_T, metrics } = teacherLoss(
    {
      rows,
      logProb_T: flatten(inputs.get('log_probs')),
      teacherLogProb_T: flatten(inputs.get('teacher_log_probs')),
      oldLogProb_T: flatten(inputs.get('old_log_probs')),
      rolloutIsWeights_T: inputs.has('rollout_is_weights') ? flatten(inputs.get('rollout_is_weights')) : undefined,
    },
    {
      lossMode: params.string('loss_mode'),
      usePolicyGradient: params.flag('use_policy_gradient'),
      lossMaxClamp: params.optionalNumber('loss_max_clamp'),
      lossAggMode: aggMode(params.string('loss_agg_mode')),
      totals: totalsOf(testCase.params),
      clipRatio: params.optionalNumber('clip_ratio'),
    },
  );
  return { loss, metrics, grad_log_probs: unflatten(dLogProb_T, rows) };
}

/** The engine's part, from logits to log-probs of the teacher's tokens and back, is done here. */
function topk(testCase: GoldenCase): Outcome {
  const [params, inputs] = [paramsOf(testCase), inputsOf(testCase)];
  const ids = (inputs.get('teacher_topk_ids') as unknown[]).map(numbers);
  const heads = (inputs.get('student_logits') as unknown[]).map((logits) => categorical(numbers(logits)));
  const k = params.number('topk');
  const own = heads.map(({ logProbs_V }) => new Set(torchTopk(logProbs_V, k)));
  const result = forwardKlTopk(
    {
      k,
      studentLogProb_TK: ids.flatMap((row, t) => row.map((id) => heads[t]!.logProbs_V[id]!)),
      teacherLogProb_TK: flatten(inputs.get('teacher_topk_log_probs')),
      overlap_TK: ids.flatMap((row, t) => row.map((id) => (own[t]!.has(id) ? 1 : 0))),
    },
    params.optionalNumber('log_prob_min_clamp'),
  );
  const logitGradient = (t: number): number[] => {
    const slopes = result.dLogProb_TK.subarray(t * k, (t + 1) * k);
    const total = slopes.reduce((sum, slope) => sum + slope, 0);
    const gradient = Array.from(heads[t]!.logProbs_V, (logProb) => -Math.exp(logProb) * total);
    ids[t]!.forEach((id, i) => {
      gradient[id] = gradient[id]! + slopes[i]!;
    });
    return gradient;
  };
  return {
    distillation_losses: result.kl_T,
    distillation_losses_clamped_at_zero: result.kl_T.map((kl) => Math.max(kl, 0)),
    student_mass: result.studentMass_T,
    teacher_mass: result.teacherMass_T,
    overlap_count: result.overlapCount_T,
    overlap_token_advantage: result.overlapAdvantage_T,
    grad_student_logits_of_clamped_sum: ids.map((_, t) => logitGradient(t)),
  };
}
