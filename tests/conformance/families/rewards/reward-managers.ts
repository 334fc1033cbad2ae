/**
 * Reward managers on verl's padded matrices. Only here a response without tokens has a place, the last column, because
 * Python's index −1 is the last one.
 */
import { at } from '../../../../core/at.ts';
import { InvalidInputError } from '../../../../core/errors.ts';
import { rewardsAtLastToken } from '../../../../core/rl/advantages/outcomes.ts';
import { dapoRewards } from '../../../../core/rl/reward-managers/dapo.ts';
import { gdpoRewards } from '../../../../core/rl/reward-managers/gdpo.ts';
import { naiveRewards } from '../../../../core/rl/reward-managers/naive.ts';
import type { ScorerResult } from '../../../../core/rl/reward-managers/types.ts';
import type { OverlongBuffer } from '../../../../core/rl/overlong.ts';
import { raggedRows } from '../../../../core/rl/ragged.ts';
import { scorerByName } from '../../../../rewards/registry.ts';
import { routeOf } from '../../../../rewards/routing.ts';
import { toScored } from '../../../../rewards/result.ts';
import { fields, inputsOf, numbers, paramsOf, unflatten } from '../../padded.ts';
import type { GoldenCase, Outcome } from '../../types.ts';
import { asInVerl } from './routing.ts';

export function managerNaive(testCase: GoldenCase): Outcome {
  const inputs = inputsOf(testCase);
  // A reward model's scores are taken as they are, and nothing is scored.
  if (inputs.has('rm_scores')) return { reward_tensor: inputs.get('rm_scores'), reward_extra_info: {} };
  const dataSource = paramsOf(testCase).string('data_source');
  const responses = inputs.get('responses_as_code_points') as number[][];
  const groundTruths = inputs.get('ground_truths') as unknown[];
  const masks = inputs.get('attention_mask') as number[][];
  const lengths = masks.map((mask) => sum(mask.slice(inputs.number('prompt_width'))));
  const results = responses.map((response, s) =>
    scoreOne(dataSource, textOf(response.slice(0, lengths[s])), groundTruths[s]),
  );
  const { rewards_S, columns } = naiveRewards(results);
  return { reward_tensor: padded(rewards_S, lengths, at(responses, 0).length), reward_extra_info: columns };
}

function scoreOne(dataSource: string, solutionStr: string, groundTruth: unknown): ScorerResult {
  const name = routeOf(dataSource)?.scorer;
  if (name === undefined) throw new InvalidInputError(`no scorer for ${dataSource}`);
  return asInVerl(name, toScored(scorerByName(name)({ dataSource, solutionStr, groundTruth }, {})));
}

/** The reference's tokenizer: a token is a code point, 0 is padding and 1 a special token. */
function textOf(tokens: readonly number[]): string {
  return String.fromCodePoint(...tokens.filter((token) => token > 1));
}

export function managerDapo(testCase: GoldenCase): Outcome {
  const [inputs, params] = [inputsOf(testCase), paramsOf(testCase)];
  const lengths = numbers(inputs.get('response_lengths'));
  const results = numbers(inputs.get('raw_scores')).map((score) =>
    inputs.flag('score_is_dict') ? { score, acc: score > 0 } : score,
  );
  const config = fields(params.get('overlong_buffer_cfg') as Record<string, unknown> | undefined);
  const overlong = config.flag('enable') ? overlongOf(params, config) : undefined;
  const { rewards_S, columns } = dapoRewards(results, lengths, { overlong, log: config.flag('log') });
  return {
    reward_tensor: padded(rewards_S, lengths, inputs.number('response_width')),
    reward_extra_info: columns,
    // The newer manager was not run without a configuration.
    reward_scores_new_manager: params.has('overlong_buffer_cfg') ? rewards_S : [],
  };
}

type Fields = ReturnType<typeof fields>;

function overlongOf(params: Fields, config: Fields): OverlongBuffer {
  if (!params.has('max_resp_len')) throw new InvalidInputError('max_resp_len is missing');
  return {
    limit: params.number('max_resp_len'),
    buffer: config.number('len'),
    factor: config.number('penalty_factor'),
  };
}

export function managerGdpo(testCase: GoldenCase): Outcome {
  const results = inputsOf(testCase).get('scorer_results') as ScorerResult[];
  const { rewards_S, columns, metrics } = gdpoRewards(results, numericKeys(at(results, 0)));
  return {
    results: [...rewards_S].map((reward_score, s) => ({
      reward_score,
      reward_extra_info: Object.fromEntries(Object.entries(columns).map(([key, values]) => [key, values[s]])),
    })),
    metrics,
  };
}

function numericKeys(result: ScorerResult): string[] {
  if (typeof result === 'number') return ['acc'];
  return Object.keys(result).filter((key) => typeof result[key] === 'number');
}

/** Rewards as verl's matrix of this width. */
function padded(rewards_S: Float64Array, lengths: readonly number[], width: number): number[][] {
  const rows = raggedRows(lengths.map((length) => (length === 0 ? width : length)));
  return unflatten(rewardsAtLastToken(rewards_S, rows), rows).map((row) => [
    ...row,
    ...Array.from<number>({ length: width - row.length }).fill(0),
  ]);
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
