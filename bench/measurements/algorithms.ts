/**
 * What the arithmetic of algorithms costs in TypeScript, on one thread: every advantage estimator and every policy loss
 * with its derivative, on 1,024 responses of 2,048 tokens, eight to a prompt. A loss takes all of them as one
 * micro-batch, as does the sum with entropy and KL (`loss.total`).
 */
import { at } from '../../core/at.ts';
import { actorTotal } from '../../core/rl/actor-total.ts';
import type { ActorLossInput } from '../../core/rl/actor-total.ts';
import { advantageEstimator } from '../../core/rl/advantages/index.ts';
import type { AdvantageBatch, AdvantageConfig } from '../../core/rl/advantages/index.ts';
import { rewardsAtLastToken } from '../../core/rl/advantages/outcomes.ts';
import { batchTotals } from '../../core/rl/aggregate.ts';
import { ADVANTAGE_NAMES, POLICY_LOSS_NAMES } from '../../core/rl/names.ts';
import { policyLoss } from '../../core/rl/policy-loss/index.ts';
import type { PolicyLossConfig } from '../../core/rl/policy-loss/index.ts';
import { raggedRows, tokenCount } from '../../core/rl/ragged.ts';
import type { RaggedRows } from '../../core/rl/ragged.ts';
import { parseRolloutCorrection } from '../../core/rl/rollout-correction/options.ts';
import { valueLoss } from '../../core/rl/value-loss.ts';
import { secondsOf } from '../clock.ts';
import type { BenchSettings, Measurement, Session } from '../measurement.ts';

type Works = Readonly<Record<string, () => unknown>>;

export const advantageCost: Measurement = {
  name: 'advantage',
  rows: ADVANTAGE_NAMES.map((name) => ({ name: `advantage.${name}`, unit: 'ms' })),
  turns: 5,
  open: async (settings) => sessionOf(advantages(new Batch(settings.quick)), settings),
};

export const lossCost: Measurement = {
  name: 'loss',
  rows: [...POLICY_LOSS_NAMES, 'total', 'value'].map((name) => ({ name: `loss.${name}`, unit: 'ms' })),
  turns: 5,
  open: async (settings) => sessionOf(losses(new Batch(settings.quick)), settings),
};

function sessionOf(works: Works, settings: BenchSettings): Session {
  const { responses, tokens } = sizes(settings.quick);
  for (let round = 0; round < warmUp; round++) for (const work of Object.values(works)) work();
  return {
    about: `${responses} responses of ${tokens} tokens, one thread`,
    turn: async () =>
      Object.fromEntries(Object.entries(works).map(([name, work]) => [name, 1000 * secondsOf(() => void work())])),
    close: async () => {},
  };
}

/** After these calls the JavaScript engine has optimised the loops, as in the first minutes of a run. */
const warmUp = 4;

const sizes = (quick: boolean) => (quick ? { responses: 16, tokens: 32 } : { responses: 1024, tokens: 2048 });
const groupSize = 8;

/** Values as a run has them: floats of the engine, one score per response. */
class Batch {
  readonly responses: number;
  readonly rows: RaggedRows;
  readonly groups_S: Int32Array;
  readonly scores_S: Float32Array;
  #state = 1;

  constructor(quick: boolean) {
    const { responses, tokens } = sizes(quick);
    this.responses = responses;
    this.rows = raggedRows(new Int32Array(responses).fill(tokens));
    this.groups_S = Int32Array.from({ length: responses }, (_, s) => Math.floor(s / groupSize));
    this.scores_S = Float32Array.from({ length: responses }, (_, s) => (s * 7) % 3);
  }

  perToken(low: number, high: number): Float32Array {
    return this.#random(tokenCount(this.rows), low, high);
  }

  perResponse(low: number, high: number): Float32Array {
    return this.#random(this.responses, low, high);
  }

  /** Numbers of a linear congruential generator, from [low, high). */
  #random(length: number, low: number, high: number): Float32Array {
    return Float32Array.from({ length }, () => {
      this.#state = (Math.imul(this.#state, 1664525) + 1013904223) >>> 0;
      return low + ((high - low) * this.#state) / 2 ** 32;
    });
  }
}

function advantages(batch: Batch): Works {
  const { rows, groups_S, scores_S, responses } = batch;
  const input: AdvantageBatch = {
    rows,
    groups_S,
    rewards_T: rewardsAtLastToken(scores_S, rows),
    values_T: batch.perToken(0, 1),
    oldLogProb_T: batch.perToken(-4, 0),
    sumPiSquared_T: batch.perToken(0, 1),
    greedyBaselines_S: batch.perResponse(0, 1),
    components: { correct: scores_S, format: batch.perResponse(0, 1) },
    processRewards_T: batch.perToken(-1, 1),
    promptValues_S: batch.perResponse(0, 1),
    episodes: {
      episodes_S: Int32Array.from({ length: responses }, (_, s) => Math.floor(s / 4)),
      steps_S: Int32Array.from({ length: responses }, (_, s) => s % 4),
      anchors_S: Int32Array.from({ length: responses }, (_, s) => s % 4),
    },
  };
  const config: AdvantageConfig = { gamma: 0.99, lam: 0.95, gdpoRewardKeys: ['correct', 'format'] };
  return byName('advantage', ADVANTAGE_NAMES, (name) => () => advantageEstimator(name).compute(input, config));
}

function losses(batch: Batch): Works {
  const { rows } = batch;
  const oldLogProb_T = batch.perToken(-4, 0);
  const change_T = batch.perToken(-0.3, 0.3);
  const input: ActorLossInput = {
    rows,
    oldLogProb_T,
    logProb_T: oldLogProb_T.map((value, t) => value + at(change_T, t)),
    rolloutLogProb_T: oldLogProb_T,
    refLogProb_T: batch.perToken(-4, 0),
    advantages_T: batch.perToken(-1, 1),
    entropy_T: batch.perToken(0, 3),
    groups_S: batch.groups_S,
    scores_S: batch.scores_S,
    logZ_S: batch.perResponse(-1, 1),
  };
  const config: PolicyLossConfig = {
    lossAggMode: 'token-mean',
    totals: batchTotals(rows),
    clipRatio: 0.2,
    clipRatioC: 3,
    droBeta: 0.1,
    rolloutCorrection: parseRolloutCorrection({
      rollout_is: 'token',
      rollout_rs: 'seq_mean_k3',
      rollout_rs_threshold: 2,
    }),
    seed: [1, 2],
  };
  const pairs_S = Int32Array.from({ length: batch.responses }, (_, s) => Math.floor(s / 2));
  const values = {
    rows,
    values_T: batch.perToken(0, 1),
    oldValues_T: batch.perToken(0, 1),
    returns_T: batch.perToken(0, 1),
  };
  const total = { ...config, lossMode: 'vanilla', entropyCoeff: 0.01, klLossCoef: 0.001, klLossType: 'low_var_kl' };
  return {
    ...byName('loss', POLICY_LOSS_NAMES, (name) => {
      // It compares exactly two responses.
      const own = name === 'online_dpo' ? { ...input, groups_S: pairs_S } : input;
      return () => policyLoss(name).compute(own, config);
    }),
    'loss.total': () => actorTotal(input, total),
    'loss.value': () => valueLoss(values, { ...config, cliprangeValue: 0.5 }),
  };
}

const byName = <Name extends string>(
  group: string,
  names: readonly Name[],
  work: (name: Name) => () => unknown,
): Works => Object.fromEntries(names.map((name) => [`${group}.${name}`, work(name)]));
