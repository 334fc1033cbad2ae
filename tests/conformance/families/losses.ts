import { at } from '../../../core/at.ts';
import { aggregate, type BatchTotals } from '../../../core/rl/aggregate.ts';
import type { LossAggMode } from '../../../core/rl/names.ts';
import { categorical, logitsGradient } from '../categorical.ts';
import { klPenalty } from '../../../core/rl/kl.ts';
import { sftLoss } from '../../../core/rl/sft-loss.ts';
import { valueLoss } from '../../../core/rl/value-loss.ts';
import { pureEvaluator } from '../evaluators.ts';
import { allRows, fields, flatten, inputsOf, maskedRows, numbers, paramsOf, unflatten } from '../padded.ts';
import type { GoldenCase, Outcome } from '../types.ts';

export const losses = pureEvaluator('losses', {
  agg_loss: aggLoss,
  kl_penalty: kl,
  entropy_loss: entropyLoss,
  sft_loss: sft,
  value_loss: value,
});

/** The aggregation refuses unknown modes by itself. */
export function aggMode(name: string): LossAggMode {
  return name as LossAggMode;
}

/** `dp_size`, `batch_num_tokens`, `global_batch_size`, `loss_scale_factor`. */
export function totalsOf(info: unknown): BatchTotals {
  const given = fields((info ?? {}) as Record<string, unknown>);
  return {
    dpSize: given.optionalNumber('dp_size'),
    batchNumTokens: given.optionalNumber('batch_num_tokens'),
    globalBatchSize: given.optionalNumber('global_batch_size'),
    lossScaleFactor: given.optionalNumber('loss_scale_factor'),
  };
}

function aggLoss(testCase: GoldenCase): Outcome {
  const inputs = inputsOf(testCase);
  const rows = maskedRows(inputs.get('loss_mask'));
  const mode = aggMode(paramsOf(testCase).string('loss_agg_mode'));
  const { value, weights_T } = aggregate(flatten(inputs.get('loss_mat')), rows, mode, totalsOf(testCase.params));
  return { loss: value, grad_loss_mat: unflatten(weights_T, rows) };
}

function kl(testCase: GoldenCase): Outcome {
  const inputs = inputsOf(testCase);
  const rows = allRows(inputs.get('logprob'));
  const type = paramsOf(testCase).string('kl_penalty');
  const { kl_T, dLogProb_T } = klPenalty(flatten(inputs.get('logprob')), flatten(inputs.get('ref_logprob')), type);
  return {
    kl: unflatten(kl_T, rows),
    grad_logprob: unflatten(dLogProb_T, rows),
    grad_ref_logprob: unflatten(
      dLogProb_T.map((d) => -d),
      rows,
    ),
  };
}

function entropyLoss(testCase: GoldenCase): Outcome {
  const inputs = inputsOf(testCase);
  const rows = maskedRows(inputs.get('response_mask'));
  const labels_T = flatten(inputs.get('labels'));
  const heads_T = (inputs.get('logits') as unknown[][]).flat().map((logits) => categorical(numbers(logits)));
  const entropy_T = Float64Array.from(heads_T, (head) => head.entropy);
  const { value, weights_T } = aggregate(entropy_T, rows, aggMode(paramsOf(testCase).string('loss_agg_mode')));
  const logitGradients = (dLogProb: (t: number) => number, dEntropy: (t: number) => number) => {
    const flat = heads_T.map((head, t) => logitsGradient(head, labels_T[t]!, dLogProb(t), dEntropy(t)));
    return Array.from({ length: rows.offsets_S1.length - 1 }, (_, s) =>
      flat.slice(rows.offsets_S1[s], rows.offsets_S1[s + 1]),
    );
  };
  return {
    entropy_loss: value,
    token_entropy: unflatten(entropy_T, rows),
    grad_logits_of_entropy: logitGradients(
      () => 0,
      (t) => weights_T[t]!,
    ),
    log_probs: unflatten(
      heads_T.map((head, t) => head.logProbs_V[labels_T[t]!]!),
      rows,
    ),
    grad_logits_of_masked_logprob_sum: logitGradients(
      (t) => rows.mask_T[t]!,
      () => 0,
    ),
    sum_pi_squared: unflatten(
      heads_T.map((head) => head.sumPiSquared),
      rows,
    ),
  };
}

/**
 * `no_padding`: the mask covers the inputs and is moved to the predicting positions; otherwise it covers the response.
 */
function sft(testCase: GoldenCase): Outcome {
  const [params, inputs] = [paramsOf(testCase), inputsOf(testCase)];
  const rows = allRows(inputs.get('log_probs'));
  const packed = params.string('pad_mode') === 'no_padding';
  const mask_N = packed ? predictorMask(flatten(inputs.get('loss_mask'))) : flatten(inputs.get('response_mask'));
  const dpSize = params.optionalNumber('dp_size') ?? 1;
  const { loss, dLogProb_N } = sftLoss(
    flatten(inputs.get('log_probs')),
    mask_N,
    params.number('batch_num_tokens'),
    dpSize,
  );
  return { loss, grad_log_probs: unflatten(dLogProb_N, rows) };
}

function value(testCase: GoldenCase): Outcome {
  const [params, inputs] = [paramsOf(testCase), inputsOf(testCase)];
  const rows = maskedRows(inputs.get('response_mask'));
  const { loss, dValue_T, metrics } = valueLoss(
    {
      rows,
      values_T: flatten(inputs.get('vpreds')),
      returns_T: flatten(inputs.get('returns')),
      oldValues_T: flatten(inputs.get('values')),
    },
    {
      lossAggMode: aggMode(params.string('loss_agg_mode')),
      totals: totalsOf(testCase.params),
      cliprangeValue: params.number('cliprange_value'),
    },
  );
  return {
    vf_loss: loss,
    vf_clipfrac: metrics['critic/vf_clipfrac'],
    vpred_mean: metrics['critic/vpred_mean'],
    grad_vpreds: unflatten(dValue_T, rows),
  };
}

/**
 * A mask over input tokens, shifted to the positions that predict them: rolled left by one over the whole packed batch,
 * as in verl. Consequence: a first token with mask 1 selects the last position of the previous row.
 */
function predictorMask(mask_N: ArrayLike<number>): Float64Array {
  return Float64Array.from({ length: mask_N.length }, (_, n) => at(mask_N, (n + 1) % mask_N.length));
}
