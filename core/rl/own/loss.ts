/**
 * Calls a policy loss of the user's own on one micro-batch, with copies of the numbers, and checks what it returns. It
 * runs in the module's thread, where a run calls it and where its gradient is checked.
 */
import { aggregate } from '../aggregate.ts';
import { InvalidInputError } from '../../errors.ts';
import { clampLogRatio } from '../log-ratio.ts';
import type { OwnLossNeed } from '../names.ts';
import { tokenMean } from '../policy-loss/columns.ts';
import type { PolicyLossConfig, PolicyLossInput, PolicyLossResult } from '../policy-loss/types.ts';
import { reduceTokenLoss } from '../policy-loss/reduce.ts';
import { tokenCount, type Numbers, type RaggedRows } from '../ragged.ts';
import { checkedNumbers, checkedObject, metricsOf, ownRows, requireFinite } from './results.ts';
import type { Detached, OwnLossInput, OwnPolicyLoss, OwnRows } from './types.ts';

/** A micro-batch with everything that the module asked for, as data that can be sent to a thread. */
export interface OwnLossCall {
  readonly rows: RaggedRows;
  readonly logProb_T: Numbers;
  readonly detached: Readonly<Record<DetachedName, Numbers | undefined>>;
  readonly rolloutIsWeights_T: Numbers | undefined;
  readonly config: Pick<
    PolicyLossConfig,
    'lossAggMode' | 'totals' | 'clipRatio' | 'clipRatioLow' | 'clipRatioHigh' | 'clipRatioC'
  >;
}

type DetachedName = keyof Detached;

/** The sources of a run for what a loss may need. */
export interface OwnLossSources extends PolicyLossInput {
  readonly entropy_T?: Numbers | undefined;
  readonly values_T?: Numbers | undefined;
}

const FIELD = {
  rolloutLogProbs: 'rolloutLogProb_T',
  refLogProbs: 'refLogProb_T',
  entropy: 'entropy_T',
  values: 'values_T',
} as const satisfies Partial<Record<OwnLossNeed, DetachedName>>;

/** Only what the module asked for. @throws InvalidInputError when some of it is missing: an error of the caller. */
export function ownLossCall(
  needs: readonly OwnLossNeed[],
  input: OwnLossSources,
  config: PolicyLossConfig,
): OwnLossCall {
  const given = (need: keyof typeof FIELD) =>
    needs.includes(need) ? (input[FIELD[need]] ?? missing(need)) : undefined;
  return {
    rows: input.rows,
    logProb_T: input.logProb_T,
    detached: {
      logProb_T: input.detachedLogProb_T,
      oldLogProb_T: input.oldLogProb_T,
      advantages_T: input.advantages_T,
      rolloutLogProb_T: given('rolloutLogProbs'),
      refLogProb_T: given('refLogProbs'),
      entropy_T: given('entropy'),
      values_T: given('values'),
      seed: needs.includes('seed') ? (config.seed ?? missing('seed')) : undefined,
    },
    rolloutIsWeights_T: input.rolloutIsWeights_T,
    config: {
      lossAggMode: config.lossAggMode,
      totals: config.totals,
      clipRatio: config.clipRatio,
      clipRatioLow: config.clipRatioLow,
      clipRatioHigh: config.clipRatioHigh,
      clipRatioC: config.clipRatioC,
    },
  };
}

function missing(need: OwnLossNeed): never {
  throw new InvalidInputError(`the policy loss needs ${need}, and the batch has none`, {
    hint: 'this is an error of the caller',
  });
}

/** @throws InvalidInputError that says what is wrong with the result; whatever the module throws. */
export function ownLossResult(loss: OwnPolicyLoss, call: OwnLossCall): PolicyLossResult {
  const rows = ownRows(call.rows);
  const tokens = tokenCount(call.rows);
  const input: OwnLossInput = {
    rows: ownRows(call.rows),
    logProb_T: new Float64Array(call.logProb_T),
    settings: {
      clipRatioLow: call.config.clipRatioLow ?? call.config.clipRatio,
      clipRatioHigh: call.config.clipRatioHigh ?? call.config.clipRatio,
      clipRatioC: call.config.clipRatioC,
      lossAggMode: call.config.lossAggMode,
    },
    aggregate: (values_T) => aggregateWeighted(values_T, rows, call),
  };
  const detached = detachedOf(call);
  const kl = { 'actor/ppo_kl': meanLogRatio(call) };
  if (loss.scope === 'token') {
    const result = checkedObject(loss.compute(input, detached));
    const loss_T = checkedNumbers('loss_T', result.loss_T, tokens);
    const dLoss_T = checkedNumbers('dLoss_T', result.dLoss_T, tokens);
    for (const values_T of [loss_T, dLoss_T]) clearOutside(values_T, rows);
    requireFinite('loss_T', loss_T);
    requireFinite('dLoss_T', dLoss_T);
    const metrics = { ...metricsOf(result.metrics), ...kl };
    return { ...reduceTokenLoss({ ...call, rows }, call.config, loss_T, dLoss_T), metrics };
  }
  const result = checkedObject(loss.compute(input, detached));
  if (typeof result.loss !== 'number' || !Number.isFinite(result.loss))
    throw new InvalidInputError(`loss: expected a finite number, got ${String(result.loss)}`);
  const dLogProb_T = checkedNumbers('dLogProb_T', result.dLogProb_T, tokens);
  requireFinite('dLogProb_T', dLogProb_T);
  requireZeroOutside(dLogProb_T, rows);
  return { loss: result.loss, dLogProb_T, metrics: { ...metricsOf(result.metrics), ...kl } };
}

/** Does what a module's `aggregate` does, with the importance weights of trainer against sampler, if there are any. */
function aggregateWeighted(values_T: Float64Array, rows: OwnRows, { rolloutIsWeights_T, config }: OwnLossCall) {
  const weighted_T = checkedNumbers('the argument of aggregate', values_T, rows.mask_T.length);
  clearOutside(weighted_T, rows);
  if (rolloutIsWeights_T === undefined) return aggregate(weighted_T, rows, config.lossAggMode, config.totals);
  const by_T = new Float64Array(rolloutIsWeights_T);
  const { value, weights_T } = aggregate(
    weighted_T.map((x, t) => (x === 0 ? 0 : x * (by_T[t] as number))),
    rows,
    config.lossAggMode,
    config.totals,
  );
  return { value, weights_T: weights_T.map((weight, t) => (weight === 0 ? 0 : weight * (by_T[t] as number))) };
}

function detachedOf({ logProb_T, detached }: OwnLossCall): Detached {
  const { logProb_T: held_T = logProb_T, oldLogProb_T = [], advantages_T = [], ...others } = detached;
  const copies = Object.entries(others).flatMap(([name, values]) =>
    values === undefined ? [] : [[name, new Float64Array(values)] as const],
  );
  return {
    logProb_T: new Float64Array(held_T),
    oldLogProb_T: new Float64Array(oldLogProb_T),
    advantages_T: new Float64Array(advantages_T),
    ...Object.fromEntries(copies),
  };
}

function clearOutside(values_T: Float64Array, { mask_T }: OwnRows): void {
  for (let t = 0; t < values_T.length; t++) if (mask_T[t] === 0) values_T[t] = 0;
}

function requireZeroOutside(dLogProb_T: Float64Array, { mask_T }: OwnRows): void {
  const t = dLogProb_T.findIndex((value, i) => value !== 0 && mask_T[i] === 0);
  if (t < 0) return;
  throw new InvalidInputError(`dLogProb_T[${t}] is ${dLogProb_T[t]}, and token ${t} is outside of the mask`, {
    hint: 'leave tokens with mask 0 out of the loss',
  });
}

/** verl's `actor/ppo_kl`: old minus new log-prob, over valid tokens. */
function meanLogRatio({ rows, logProb_T, detached: { oldLogProb_T = [] } }: OwnLossCall): number {
  let [sum, valid] = [0, 0];
  for (let t = 0; t < logProb_T.length; t++) {
    const mask = rows.mask_T[t] as number;
    if (mask === 0) continue;
    sum -= clampLogRatio((logProb_T[t] as number) - (oldLogProb_T[t] as number)) * mask;
    valid += mask;
  }
  return tokenMean(sum, valid);
}
