/**
 * Group-in-group policy optimisation (Feng et al. 2025, arXiv 2505.10978; names of verl-agent), for agents: a row is
 * one step of an episode, and its token rewards add up to the environment's reward for that step.
 *
 *   A = A_episode + w·A_step, the same on all tokens of the step,   R = A
 *   A_episode: the reward of the whole episode against the other episodes of the prompt
 *   A_step:    the discounted return from this step on, R_i = r_i + γ·R_{i+1}, against the steps of the same prompt
 *              that began with the same observation (`anchors_S`)
 *
 * Both subtract the mean; `mean_std_norm` also divides by the unbiased std + 1e-6. A single episode of a prompt keeps
 * its reward (mean 0, std 1). A single step with its anchor gets A_step = 0. `per_trajectory` (the paper) counts an
 * episode once in the statistics, `per_step_row` (the authors' code) once per step.
 */
import { at } from '../../at.ts';
import { InvalidInputError } from '../../errors.ts';
import { ADVANTAGE_NEEDS, GIGPO_EPISODE_STATS, GIGPO_MODES, type GigpoMode } from '../names.ts';
import type { Numbers } from '../ragged.ts';
import { divideRows, groupStats, rowsByGroup } from './groups.ts';
import { missing, requireSamples } from './inputs.ts';
import { outcomeAdvantages, outcomeScores } from './outcomes.ts';
import type {
  AdvantageBatch,
  AdvantageConfig,
  AdvantageEstimator,
  Advantages,
  EpisodeSteps,
  GigpoConfig,
} from './types.ts';

const EPSILON = 1e-6;

export const gigpo: AdvantageEstimator = { name: 'gigpo', needs: ADVANTAGE_NEEDS.gigpo, compute };

function compute(batch: AdvantageBatch, config: AdvantageConfig): Advantages {
  const weight = config.gigpo?.stepAdvantageW ?? 1;
  const { episode_S, step_S } = gigpoParts(batch, config);
  const total_S = episode_S.map((advantage, s) => advantage + weight * at(step_S, s));
  return outcomeAdvantages(total_S, batch.rows);
}

export interface GigpoParts {
  /** R_i: the discounted return from each step on. */
  readonly returns_S: Float64Array;
  readonly episode_S: Float64Array;
  readonly step_S: Float64Array;
}

/** The two advantages before they are added up. */
export function gigpoParts(batch: AdvantageBatch, config: AdvantageConfig): GigpoParts {
  const { gamma = 1, epsilon = EPSILON, gigpo: settings = {} } = config;
  requireOneOf('mode', settings.mode, GIGPO_MODES);
  requireOneOf('episode_stats', settings.episodeStats, GIGPO_EPISODE_STATS);
  const steps = episodesOf(batch);
  const rewards_S = outcomeScores(batch.rewards_T, batch.rows);
  const parts: GigpoParts = {
    returns_S: new Float64Array(rewards_S.length),
    episode_S: new Float64Array(rewards_S.length),
    step_S: new Float64Array(rewards_S.length),
  };
  for (const members of rowsByGroup(batch.groups_S).values()) {
    const episodes = [...divideRows(members, steps.episodes_S).values()];
    for (const episode of episodes) addReturns(inOrder(episode, steps), rewards_S, gamma, parts.returns_S);
    addEpisodeAdvantages(episodes, rewards_S, settings, epsilon, parts.episode_S);
    for (const alike of divideRows(members, steps.anchors_S).values()) {
      if (alike.length > 1) addNormalized(alike, parts.returns_S, settings.mode, epsilon, parts.step_S);
    }
  }
  return parts;
}

function episodesOf(batch: AdvantageBatch): EpisodeSteps {
  const { episodes } = batch;
  if (episodes === undefined)
    return missing('gigpo', 'episodes', 'episodes', 'sample with an agent, one row per step of an episode');
  requireSamples('groups', batch.groups_S, batch);
  requireSamples('episodes', episodes.episodes_S, batch);
  requireSamples('steps', episodes.steps_S, batch);
  requireSamples('anchors', episodes.anchors_S, batch);
  return episodes;
}

function requireOneOf(key: string, value: string | undefined, known: readonly string[]): void {
  if (value === undefined || known.includes(value)) return;
  throw new InvalidInputError(`unknown gigpo.${key} "${value}"`, { hint: `one of ${known.join(', ')}` });
}

function inOrder(episode: readonly number[], { steps_S }: EpisodeSteps): number[] {
  return episode.toSorted((a, b) => at(steps_S, a) - at(steps_S, b));
}

function addReturns(episode: readonly number[], rewards_S: Numbers, gamma: number, returns_S: Float64Array): void {
  let running = 0;
  for (const s of episode.toReversed()) {
    running = at(rewards_S, s) + gamma * running;
    returns_S[s] = running;
  }
}

function addEpisodeAdvantages(
  episodes: readonly (readonly number[])[],
  rewards_S: Numbers,
  { mode, episodeStats = 'per_trajectory' }: GigpoConfig,
  epsilon: number,
  advantages_S: Float64Array,
): void {
  const totals = episodes.map((episode) => episode.reduce((sum, s) => sum + at(rewards_S, s), 0));
  const counted = totals.flatMap((total, e) =>
    episodeStats === 'per_trajectory' ? [total] : at(episodes, e).map(() => total),
  );
  const { mean, std } = groupStats(counted, [...counted.keys()]);
  const scale = scaleOf(mode, std, epsilon);
  episodes.forEach((episode, e) => {
    for (const s of episode) advantages_S[s] = (at(totals, e) - mean) / scale;
  });
}

function addNormalized(
  members: readonly number[],
  values_S: Numbers,
  mode: GigpoMode | undefined,
  epsilon: number,
  advantages_S: Float64Array,
): void {
  const { mean, std } = groupStats(values_S, members);
  const scale = scaleOf(mode, std, epsilon);
  for (const s of members) advantages_S[s] = (at(values_S, s) - mean) / scale;
}

function scaleOf(mode: GigpoMode | undefined, std: number, epsilon: number): number {
  return mode === 'mean_std_norm' ? std + epsilon : 1;
}
