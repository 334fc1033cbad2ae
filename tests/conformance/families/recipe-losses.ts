import { softmeanAdvantages } from '../../../core/rl/advantages/sppo.ts';
import { categorical } from '../categorical.ts';
import { policyLoss, type PolicyLossConfig } from '../../../core/rl/policy-loss/index.ts';
import { dpoPairs, preferenceLoss } from '../../../core/rl/preference-loss.ts';
import { processRewards } from '../../../core/rl/prime/process-reward.ts';
import { primeAccuracy, primeLoss } from '../../../core/rl/prime/reward-model-loss.ts';
import { broadcastRows, raggedRows } from '../../../core/rl/ragged.ts';
import { rowSums } from '../../../core/rl/row-sums.ts';
import { pureEvaluator } from '../evaluators.ts';
import { allRows, flatten, inputsOf, maskedRows, numbers, paramsOf, requireSameShape, unflatten } from '../padded.ts';
import { aggMode } from './losses.ts';
import type { GoldenCase, Outcome } from '../types.ts';

export const recipeLosses = pureEvaluator('recipes', {
  sppo,
  gvpo,
  flowrl,
  spin_online_dpo: onlineDpo,
  prime_rm_loss: primeRewardModel,
  prime_process_reward: primeProcessReward,
});

const basics: PolicyLossConfig = { lossAggMode: aggMode('token-mean'), totals: {}, clipRatio: 0.2, clipRatioC: 3 };

function sppo(testCase: GoldenCase): Outcome {
  const [params, inputs] = [paramsOf(testCase), inputsOf(testCase)];
  const rows = maskedRows(inputs.get('response_mask'));
  const rewards = inputs.get('token_level_rewards');
  const advantages_S = softmeanAdvantages(rowSums(flatten(rewards), allRows(rewards)), params.number('softmean_beta'));
  const [logProb_T, oldLogProb_T] = [flatten(inputs.get('log_prob')), flatten(inputs.get('old_log_prob'))];
  const { loss, dLogProb_T } = policyLoss('sppo').compute(
    { rows, logProb_T, oldLogProb_T, advantages_T: broadcastRows(advantages_S, rows) },
    { ...basics, sppoEta: params.number('sppo_eta') },
  );
  const old_S = rowSums(oldLogProb_T, rows);
  return {
    seq_level_rewards: advantages_S,
    scaled_rewards: advantages_S.map((advantage) => params.number('sppo_eta') * advantage),
    log_ratios: rowSums(logProb_T, rows).map((sum, s) => sum - old_S[s]!),
    loss,
    grad_log_prob: unflatten(dLogProb_T, rows),
  };
}

function gvpo(testCase: GoldenCase): Outcome {
  const [params, inputs] = [paramsOf(testCase), inputsOf(testCase)];
  const rows = maskedRows(inputs.get('response_mask'));
  const { loss, dLogProb_T } = policyLoss('gvpo').compute(
    {
      rows,
      logProb_T: flatten(inputs.get('log_prob')),
      oldLogProb_T: flatten(inputs.get('old_log_prob')),
      advantages_T: flatten(inputs.get('advantages')),
      groups_S: inputs.get('uid') as unknown[],
    },
    { ...basics, gvpoBeta: params.number('beta'), groupSize: params.number('n') },
  );
  return { loss, grad_log_prob: unflatten(dLogProb_T, rows) };
}

function flowrl(testCase: GoldenCase): Outcome {
  const [params, inputs] = [paramsOf(testCase), inputsOf(testCase)];
  const rows = maskedRows(inputs.get('response_mask'));
  const { loss, dLogProb_T, dLogZ_S, metrics } = policyLoss('flowrl').compute(
    {
      rows,
      logProb_T: flatten(inputs.get('log_prob')),
      oldLogProb_T: flatten(inputs.get('old_log_prob')),
      refLogProb_T: flatten(inputs.get('ref_log_prob')),
      advantages_T: flatten(inputs.get('reward')),
      logZ_S: flatten(inputs.get('log_z')),
    },
    { ...basics, flowrlBetaCoef: params.number('flowrl_beta_coef') },
  );
  return {
    loss,
    metrics,
    grad_log_prob: unflatten(dLogProb_T, rows),
    grad_log_z: Array.from(dLogZ_S ?? [], (slope) => [slope]),
  };
}

function onlineDpo(testCase: GoldenCase): Outcome {
  switch (paramsOf(testCase).string('function')) {
    case 'compute_onlinedpo_pref':
      return preferences(testCase);
    case 'compute_online_dpo_loss':
      return pairLoss(testCase);
    default:
      return sequenceLogProbs(testCase);
  }
}

/** The reference's batch is interleaved: rows 2i and 2i + 1 answer prompt i. */
function preferences(testCase: GoldenCase): Outcome {
  const [rewards, mask] = [inputsOf(testCase).get('token_level_rewards'), inputsOf(testCase).get('response_mask')];
  requireSameShape(rewards, mask);
  const scores_S = rowSums(flatten(rewards), maskedRows(mask));
  const chosen = Array.from(scores_S, () => 0);
  const prompts = chosen.map((_, s) => s >> 1);
  for (const pair of dpoPairs(scores_S, prompts)) chosen[pair.chosen] = 1;
  return { chosen };
}

function pairLoss(testCase: GoldenCase): Outcome {
  const [params, inputs] = [paramsOf(testCase), inputsOf(testCase)];
  const { loss, dChosen_G } = preferenceLoss(
    {
      chosen_G: numbers(inputs.get('policy_chosen_logps')),
      rejected_G: numbers(inputs.get('policy_rejected_logps')),
      reference: params.flag('reference_free')
        ? undefined
        : {
            chosen_G: numbers(inputs.get('reference_chosen_logps')),
            rejected_G: numbers(inputs.get('reference_rejected_logps')),
          },
    },
    {
      beta: params.number('beta'),
      lossType: params.string('loss_type'),
      labelSmoothing: params.number('label_smoothing'),
    },
  );
  return { loss, grad_policy_chosen: dChosen_G, grad_policy_rejected: dChosen_G.map((slope) => -slope) };
}

/** Position t of the logits predicts label t + 1; label −100 does not count. */
function sequenceLogProbs(testCase: GoldenCase): Outcome {
  const labels = (inputsOf(testCase).get('labels') as unknown[]).map(numbers);
  const logits = inputsOf(testCase).get('logits') as unknown[][];
  const predicted = labels.map((row) => row.slice(1));
  const rows = maskedRows(predicted.map((row) => row.map((label) => (label === -100 ? 0 : 1))));
  const logProb_T = predicted.flatMap((row, s) =>
    row.map((label, t) => (label === -100 ? 0 : categorical(numbers(logits[s]![t])).logProbs_V[label]!)),
  );
  const counts_S = rowSums(rows.mask_T, rows);
  const average = paramsOf(testCase).flag('average_log_prob');
  return { logps: rowSums(logProb_T, rows).map((sum, s) => (average ? sum / Math.max(counts_S[s]!, 1) : sum)) };
}

/**
 * The reference takes the Q and accuracies of a row's whole group from `Q_bc` and `acc_bc`; rows are ordered by group.
 */
function primeRewardModel(testCase: GoldenCase): Outcome {
  const [params, inputs] = [paramsOf(testCase), inputsOf(testCase)];
  const rows = maskedRows(inputs.get('response_mask'));
  const size = params.number('n_samples');
  const accuracies_S = numbers(inputs.get('acc'));
  const rivals = inputs.has('Q_bc') ? (inputs.get('Q_bc') as unknown[]).map(numbers) : undefined;
  const input = {
    rows,
    q_T: flatten(inputs.get('q')),
    accuracies_S,
    groups_S: accuracies_S.map((_, s) => Math.floor(s / size)),
    groupQ_S: rivals?.map((row, s) => row[s % size]!),
  };
  if (params.string('kind') === 'accuracy') {
    const { pairs, signs } = primeAccuracy(input);
    return { dpo_accuracy: pairs, dpo_abs_accuracy: signs };
  }
  const { loss, dQ_T } = primeLoss(input, { loss: params.string('kind'), beta: params.number('beta') });
  return { loss, grad_q: unflatten(dQ_T, rows) };
}

/** The reference works on padded responses: zeros follow the valid tokens. */
function primeProcessReward(testCase: GoldenCase): Outcome {
  const [params, inputs] = [paramsOf(testCase), inputsOf(testCase)];
  const start = params.number('prompt_length');
  const ids = (inputs.get('input_ids') as unknown[]).map(numbers);
  const lengths_S = (inputs.get('attention_mask') as unknown[]).map((row) => sum(numbers(row).slice(start)));
  const rows = raggedRows(lengths_S);
  const model = responseLogProbs(inputs.get('rm_logits'), ids, start);
  const reference = inputs.has('ref_logits')
    ? responseLogProbs(inputs.get('ref_logits'), ids, start)
    : (inputs.get('old_log_probs') as unknown[]).map(numbers);
  const q = model.map((row, s) => row.slice(0, lengths_S[s]).map((logProb, t) => logProb - reference[s]![t]!));
  const scores = (norm: string) =>
    processRewards(rows, q.flat(), numbers(inputs.get('acc')), {
      beta: params.number('beta_train'),
      lambda: params.number('lambda'),
      useGroundTruth: params.flag('prime_use_gt'),
      granularity: params.string('prime_granularity'),
      norm,
    });
  const width = model[0]!.length;
  return {
    q: padded(q, width),
    token_level_scores: padded(unflatten(scores('none'), rows), width),
    token_level_scores_normed: padded(unflatten(scores(params.string('prime_norm')), rows), width),
  };
}

/** Log-probs of the response tokens, padding included; the logits one position before predict a token. */
function responseLogProbs(logits: unknown, ids: readonly number[][], start: number): number[][] {
  return (logits as unknown[][]).map((row, s) =>
    ids[s]!.slice(start).map((id, t) => categorical(numbers(row[start + t - 1])).logProbs_V[id]!),
  );
}

function padded(matrix: readonly number[][], width: number): number[][] {
  return matrix.map((row) => [...row, ...Array.from({ length: width - row.length }, () => 0)]);
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
