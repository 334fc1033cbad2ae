/**
 * What the last iterations of a run say against it: it learns nothing, its responses are cut, its reward collapsed, its
 * gradient or its distance to the reference policy explodes. Pure: metrics in, warnings out.
 */
import { medianOf } from './median.ts';
import { showNumber } from './quantities.ts';

/** Metrics of one iteration. Infinities and not-a-number are texts in records. */
export interface WarnedIteration {
  readonly iteration: number;
  readonly metrics: Readonly<Record<string, number | string>>;
}

export interface RunWarning {
  readonly code: 'NoLearningSignal' | 'ResponsesCut' | 'RewardCollapsed' | 'GradientExploding' | 'FarFromReference';
  /** What was seen. */
  readonly seen: string;
  /** The first and the last iteration of the warning. */
  readonly iterations: readonly [first: number, last: number];
  /** What to do; RUN stands for the run's id. */
  readonly advice: string;
}

/** Iterations that the warnings look back on. */
export const warningWindow = 24;

/** This many iterations in a row make a warning; fewer may be chance. */
const inARow = 3;
/** Above this share of cut responses, most answers never end. */
const cutShare = 0.5;
/** Nats per token: a policy so far away has little in common with its reference. */
const farKl = 5;
/** Times the median of the gradient's norm. */
const explodingTimes = 100;

type Rule = (rows: readonly WarnedIteration[]) => RunWarning | undefined;

/** Warnings of iterations in ascending order; only the newest `warningWindow` count. */
export function warningsOf(iterations: readonly WarnedIteration[]): RunWarning[] {
  const rows = iterations.slice(-warningWindow);
  return rules.map((rule) => rule(rows)).filter((warning) => warning !== undefined);
}

/** `no learning signal in iterations 4 to 9: …`, for people. */
export function warningText(warning: RunWarning, runId: string): string {
  return `${warningTitle(warning)}. ${warning.advice.replaceAll('RUN', runId)}`;
}

/** The same without the advice. */
export function warningTitle({ seen, iterations: [first, last] }: RunWarning): string {
  return `warning: ${seen}, ${first === last ? `in iteration ${first}` : `in iterations ${first} to ${last}`}`;
}

function noLearningSignal(rows: readonly WarnedIteration[]): RunWarning | undefined {
  const streak = newestStreak(rows, (row) => valueOf(row, 'training/groups_without_signal') === 1 || allZero(row));
  if (streak.length < inARow) return undefined;
  const scores = streak.map((row) => valueOf(row, 'critic/score/mean')).filter((score) => score !== undefined);
  const [low, high] = [Math.min(...scores), Math.max(...scores)];
  const before = Math.max(
    ...rows.slice(0, -streak.length).map((row) => valueOf(row, 'critic/score/mean') ?? -Infinity),
  );
  const reward = low === high ? `, and every reward was ${showNumber(low)}` : '';
  return {
    code: 'NoLearningSignal',
    seen: `no learning signal: the responses to each prompt all had the same reward${reward}`,
    iterations: between(streak),
    advice:
      before > high
        ? `Before, the reward reached ${showNumber(before)}: actor.optim.lr may be too large. Read some responses: petrel samples RUN.`
        : 'Nothing is learned from them. Read some responses: petrel samples RUN. Is the scorer right, are the questions too hard or ' +
          'too easy for the model, is rollout.temperature 0?',
  };
}

/** Advantages are zero where every response was as good as expected. */
const allZero = (row: WarnedIteration): boolean =>
  valueOf(row, 'critic/advantages/max') === 0 && valueOf(row, 'critic/advantages/min') === 0;

function responsesCut(rows: readonly WarnedIteration[]): RunWarning | undefined {
  const shareOf = (row: WarnedIteration) => valueOf(row, 'response_length/clip_ratio') ?? 0;
  const streak = newestStreak(rows, (row) => shareOf(row) > cutShare);
  if (streak.length < inARow) return undefined;
  const mean = streak.reduce((sum, row) => sum + shareOf(row), 0) / streak.length;
  return {
    code: 'ResponsesCut',
    seen: `${Math.round(100 * mean)} % of the responses were cut at data.max_response_length`,
    iterations: between(streak),
    advice:
      'Their answers may never come. Read some: petrel samples RUN. Raise data.max_response_length, or give the model a reason to stop: ' +
      'rollout.stop, its chat template.',
  };
}

/** The reward was high for some iterations, fell to the lowest of all and has stayed there. */
function rewardCollapsed(rows: readonly WarnedIteration[]): RunWarning | undefined {
  const rewards = rows.flatMap((row) => {
    const reward = valueOf(row, 'critic/score/mean');
    return reward === undefined ? [] : [{ iteration: row.iteration, metrics: row.metrics, reward }];
  });
  const [lowest, highest] = [Math.min(...rewards.map(rewardOf)), Math.max(...rewards.map(rewardOf))];
  const range = highest - lowest;
  const streak = newestStreak(rewards, (row) => row.reward <= lowest + 0.05 * range);
  const before = rewards.slice(0, rewards.length - streak.length);
  const wasHigh = longestStreak(before, (row) => row.reward > lowest + 0.5 * range) >= inARow;
  if (!(range > 0) || streak.length < collapsedFor || !wasHigh) return undefined;
  return {
    code: 'RewardCollapsed',
    seen: `the reward collapsed: it fell from ${showNumber(highest)} to ${showNumber(lowest)} and has stayed there`,
    iterations: between(streak),
    advice:
      'Go back to an iteration before it with a smaller actor.optim.lr: petrel metrics RUN --plot shows where, then ' +
      'petrel resume RUN --from <k> actor.optim.lr=<smaller>.',
  };
}

/** A reward at its lowest for so many iterations does not come back by itself. */
const collapsedFor = 5;

const rewardOf = ({ reward }: { readonly reward: number }): number => reward;

function gradientExploding(rows: readonly WarnedIteration[]): RunWarning | undefined {
  const norms = rows.flatMap(({ iteration, metrics }) => {
    const norm = metrics['actor/grad_norm'];
    return norm === undefined ? [] : [{ iteration, norm: Number(norm) }];
  });
  const finite = norms.map(({ norm }) => norm).filter((norm) => Number.isFinite(norm));
  const median = medianOf(finite) ?? 0;
  const isExploding = (norm: number) =>
    !Number.isFinite(norm) || (finite.length >= 2 * inARow && median > 0 && norm > explodingTimes * median);
  const bad = norms.filter(({ norm }) => isExploding(norm));
  const worst = bad.find(({ norm }) => !Number.isFinite(norm)) ?? bad.at(-1);
  if (worst === undefined) return undefined;
  const size = Number.isFinite(worst.norm)
    ? `${showNumber(worst.norm)}, ${showNumber(median)} is usual`
    : 'not a finite number';
  return {
    code: 'GradientExploding',
    seen: `the gradient exploded: its norm was ${size}`,
    iterations: between(bad),
    advice:
      'Lower actor.optim.lr or actor.grad_clip, or look for what is special in these samples: petrel samples RUN -i <k>.',
  };
}

function farFromReference(rows: readonly WarnedIteration[]): RunWarning | undefined {
  const isFar = ({ metrics }: WarnedIteration) => {
    const kl = metrics['actor/kl_loss'];
    return kl !== undefined && !(Number(kl) <= farKl);
  };
  const streak = newestStreak(rows, isFar);
  const last = streak.at(-1);
  if (last === undefined || streak.length < inARow) return undefined;
  return {
    code: 'FarFromReference',
    seen: `the policy is far from the reference policy: actor/kl_loss is ${showNumber(Number(last.metrics['actor/kl_loss']))}`,
    iterations: between(streak),
    advice:
      'Its text may be degenerate. Read some: petrel samples RUN. Raise actor.kl_loss_coef or lower actor.optim.lr.',
  };
}

const rules: readonly Rule[] = [noLearningSignal, responsesCut, rewardCollapsed, gradientExploding, farFromReference];

/** The iterations at the end that all hold. */
function newestStreak<Row>(rows: readonly Row[], holds: (row: Row) => boolean): Row[] {
  const lastOther = rows.findLastIndex((row) => !holds(row));
  return rows.slice(lastOther + 1);
}

function longestStreak<Row>(rows: readonly Row[], holds: (row: Row) => boolean): number {
  let [longest, current] = [0, 0];
  for (const row of rows) {
    current = holds(row) ? current + 1 : 0;
    longest = Math.max(longest, current);
  }
  return longest;
}

function between(rows: readonly Pick<WarnedIteration, 'iteration'>[]): [number, number] {
  return [rows[0]?.iteration ?? 0, rows.at(-1)?.iteration ?? 0];
}

/** undefined for a metric that is absent or not finite. */
function valueOf({ metrics }: WarnedIteration, name: string): number | undefined {
  const value = metrics[name];
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined;
}
