/**
 * On-policy distillation in an update (verl: `distillation_ppo_loss`): the loss of the teacher's log-probs, alone or
 * beside the policy loss,
 *
 *   total = policy loss + coef · distillation loss     with task rewards, entropy and KL terms as always
 *   total = distillation loss                          without
 *
 * For `forward_kl_topk` the student's log-probs of the teacher's k tokens are outputs of the same forward pass: every
 * scored position is wanted 1 + k times, first with the sampled token of each position, then with the teacher's tokens
 * of each.
 */
import { at } from '../../../core/at.ts';
import type { PackedBatch } from '../../../core/ports/policy.ts';
import type { LossSettings } from '../../../core/records/schema.ts';
import type { ActorLossResult } from '../../../core/rl/actor-total.ts';
import { aggregate } from '../../../core/rl/aggregate.ts';
import { teacherLoss } from '../../../core/rl/distillation/teacher-loss.ts';
import { topkLoss } from '../../../core/rl/distillation/topk.ts';
import type { LossAggMode } from '../../../core/rl/names.ts';
import type { BatchTensors } from '../../../models/batch-tensors.ts';
import type { Coefficients, LossInputs, StepTotals } from './loss-terms.ts';
import { gather } from './micro-batch.ts';
import type { MicroBatch } from './micro-batch.ts';

type Distillation = NonNullable<LossSettings['distillation']>;

const topkOf = ({ distillation }: LossSettings): number =>
  distillation?.lossMode === 'forward_kl_topk' ? distillation.topk : 0;

/** What the student computes for a micro-batch: with top-k tokens, log-probs of these, too. */
export function studentPass(
  settings: LossSettings,
  batch: BatchTensors,
  { packed, tokens_P }: MicroBatch,
): PackedBatch {
  const k = topkOf(settings);
  if (k === 0) return packed;
  const { positions_P, targets_P } = packed;
  const count = positions_P.length;
  const teacherTokens_TK = present(batch.teacherTopTokens_TK);
  const positions = new Int32Array(count * (1 + k));
  const targets = new Int32Array(positions.length);
  positions.set(positions_P);
  targets.set(targets_P);
  for (let p = 0; p < count; p++) {
    const from = count + p * k;
    positions.fill(at(positions_P, p), from, from + k);
    const t = at(tokens_P, p) * k;
    targets.set(teacherTokens_TK.subarray(t, t + k), from);
  }
  return { ...packed, positions_P: positions, targets_P: targets };
}

/** `outputs`: of the student's pass. `task`: the loss of the policy, from its outputs. */
export function distilled(
  settings: LossSettings & { readonly distillation: Distillation },
  batch: BatchTensors,
  micro: MicroBatch,
  outputs: LossInputs,
  totals: StepTotals,
  task: (own: LossInputs) => ActorLossResult,
): Coefficients {
  const { distillation } = settings;
  const tokens = micro.tokens_P.length;
  const own: LossInputs = {
    logProbs: outputs.logProbs.subarray(0, tokens),
    ...(outputs.entropy && { entropy: outputs.entropy.subarray(0, tokens) }),
  };
  const ofTask = distillation.useTaskRewards ? task(own) : withoutTask(settings, batch, micro, own, totals);
  const ofTeacher = lossOfTeacher(settings, batch, micro, outputs, totals);
  const weight = distillation.useTaskRewards ? distillation.coef : 1;
  const logProbs = Float32Array.from(ofTeacher.derivative, (slope) => weight * slope);
  ofTask.dLogProb_T.forEach((slope, t) => (logProbs[t] = slope + at(logProbs, t)));
  const entropy = ofTask.dEntropy_T && new Float32Array(logProbs.length);
  entropy?.set(ofTask.dEntropy_T ?? []);
  return {
    loss: ofTask.loss + weight * ofTeacher.loss,
    gradients: { logProbs, ...(entropy && { entropy }) },
    metrics: { ...ofTask.metrics, ...ofTeacher.metrics, 'distillation/loss': ofTeacher.loss },
  };
}

/** Loss 0; reports the entropy. */
function withoutTask(
  { lossAggMode }: LossSettings,
  batch: BatchTensors,
  micro: MicroBatch,
  { logProbs, entropy }: LossInputs,
  totals: StepTotals,
): ActorLossResult {
  const metrics: Record<string, number> = {};
  if (entropy !== undefined)
    metrics['actor/entropy_loss'] = aggregate(entropy, rowsOf(batch, micro), lossAggMode as LossAggMode, totals).value;
  return { loss: 0, dLogProb_T: new Float64Array(logProbs.length), metrics };
}

/** `derivative`: by every output of the student's pass. */
function lossOfTeacher(
  settings: LossSettings & { readonly distillation: Distillation },
  batch: BatchTensors,
  micro: MicroBatch,
  { logProbs }: LossInputs,
  totals: StepTotals,
): { readonly loss: number; readonly derivative: Float64Array; readonly metrics: Readonly<Record<string, number>> } {
  const { distillation } = settings;
  const rows = rowsOf(batch, micro);
  const lossAggMode = settings.lossAggMode as LossAggMode;
  const k = topkOf(settings);
  const tokens = micro.tokens_P.length;
  if (k === 0) {
    const { loss, dLogProb_T, metrics } = teacherLoss(
      {
        rows,
        logProb_T: logProbs,
        oldLogProb_T: batch.oldLogProbs_T === undefined ? logProbs : gather(batch.oldLogProbs_T, micro.tokens_P),
        teacherLogProb_T: gather(present(batch.teacherLogProbs_T), micro.tokens_P),
      },
      { ...distillation, lossAggMode, totals },
    );
    return { loss, derivative: dLogProb_T, metrics };
  }
  const { loss, dLogProb_TK, metrics } = topkLoss(
    rows,
    {
      k,
      studentLogProb_TK: logProbs.subarray(tokens),
      teacherLogProb_TK: gatherEach(present(batch.teacherTopLogProbs_TK), micro.tokens_P, k),
    },
    { ...distillation, lossAggMode, totals },
  );
  const derivative = new Float64Array(logProbs.length);
  derivative.set(dLogProb_TK, tokens);
  return { loss, derivative, metrics };
}

const rowsOf = (batch: BatchTensors, micro: MicroBatch) => ({
  offsets_S1: micro.rowOffsets_S1,
  mask_T: gather(batch.mask_T, micro.tokens_P),
});

/** The k values of each of the micro-batch's tokens. */
function gatherEach(values_TK: Float32Array, tokens_P: Int32Array, k: number): Float32Array {
  const found = new Float32Array(tokens_P.length * k);
  tokens_P.forEach((t, p) => found.set(values_TK.subarray(t * k, (t + 1) * k), p * k));
  return found;
}

function present<T>(tensor: T | undefined): T {
  if (tensor === undefined) throw new Error('the batch has no log-probs of a teacher');
  return tensor;
}
