/**
 * The numbers of a validation (verl: `process_validation_metrics`, `_val_metrics_update`). For every prompt and every
 * number x that its N responses have:
 *
 *   mean@N, std@N                 mean and standard deviation (of the population) of x; std for N > 1
 *   best@k/mean, best@k/std       of the best of k responses drawn with replacement, for k = 2, 4, 8, … below N, and N
 *   worst@k/mean, worst@k/std     of the worst of them
 *   maj@k/mean, maj@k/std         of the value of their majority vote, where responses have a vote (verl: `pred`)
 *
 * each averaged over the prompts of a data source. With 1,000 seeded draws verl estimates best, worst and maj; here
 * they are exact (best-at-k.ts, majority-at-k.ts). A standard deviation is a prompt's, averaged over prompts, and says
 * nothing about the error of the mean. Prompts may differ in N; then a source has the names of each N, averaged over
 * the prompts that have it.
 *
 * Names: `val-core/{source}/{number}/{metric}` for mean, best and maj with the largest N of the core number, which is
 * `acc` where the source has it, else `reward`; otherwise `val-aux/…`. A source may contain slashes.
 */
import { at } from '../at.ts';
import { InvalidInputError } from '../errors.ts';
import { bestAtK, worstAtK, type Moments } from './best-at-k.ts';
import { standardDeviation } from './group-signal.ts';
import { majorityAtK, type KnownOdds, type Vote } from './majority-at-k.ts';

/** The responses to one prompt. */
export interface PromptSamples {
  readonly source: string;
  /** A number of each response, by name: `reward`, `acc`, others. null: the response has none and takes no part. */
  readonly values: Readonly<Record<string, readonly (number | null)[]>>;
  /** What each response answers (verl: `pred`). Absent: no majority votes. */
  readonly votes?: readonly Vote[] | undefined;
}

/** Metrics such as `best@4/mean`, by the number that they are of. */
type MetricsByNumber = ReadonlyMap<string, Readonly<Record<string, number>>>;

export interface PromptStatistics {
  readonly source: string;
  readonly metrics: MetricsByNumber;
}

/** Statistics by data source. */
export type ValidationStatistics = ReadonlyMap<string, MetricsByNumber>;

/** `known`: shared by the prompts of a validation. @throws InvalidInputError for lists of different lengths. */
export function promptStatistics({ source, values, votes }: PromptSamples, known: KnownOdds): PromptStatistics {
  const lengths = new Set([...Object.values(values), ...(votes ? [votes] : [])].map((list) => list.length));
  if (lengths.size > 1)
    throw new InvalidInputError(`a prompt of ${source} has lists of ${[...lengths].join(' and ')} responses`);
  const metrics = Object.entries(values).map(([name, list]) => [name, metricsOf(list, votes, known)] as const);
  return { source, metrics: new Map(metrics.filter(([, one]) => Object.keys(one).length > 0)) };
}

/** Averages over the prompts of each source. Sources and numbers are in the order in which they first appear. */
export function validationStatistics(prompts: readonly PromptStatistics[]): ValidationStatistics {
  const sources = [...new Set(prompts.map(({ source }) => source))];
  return new Map(
    sources.map((source) => [source, averagesOf(prompts.filter((prompt) => prompt.source === source))] as const),
  );
}

function averagesOf(prompts: readonly PromptStatistics[]): MetricsByNumber {
  const names = [...new Set(prompts.flatMap(({ metrics }) => [...metrics.keys()]))];
  const perPrompt = (name: string) => prompts.map(({ metrics }) => metrics.get(name) ?? {});
  return new Map(names.map((name) => [name, meanByName(perPrompt(name))] as const));
}

/** The statistics under their full names. `coreOf`: the core number of a source. */
export function validationMetrics(
  statistics: ValidationStatistics,
  coreOf = (_source: string, numbers: MetricsByNumber): string => (numbers.has('acc') ? 'acc' : 'reward'),
): Record<string, number> {
  const named: Record<string, number> = {};
  for (const [source, numbers] of statistics) {
    const core = coreOf(source, numbers);
    for (const [name, metrics] of numbers) {
      const largest = Math.max(...Object.keys(metrics).map(responsesIn));
      for (const [metric, value] of Object.entries(metrics)) {
        const isCore = name === core && /^(?:mean|best|maj)@/.test(metric) && responsesIn(metric) === largest;
        named[`${isCore ? 'val-core' : 'val-aux'}/${source}/${name}/${metric}`] = value;
      }
    }
  }
  return named;
}

/** The k or N of a metric's name. */
const responsesIn = (metric: string): number => Number(/@(\d+)/.exec(metric)?.[1]);

/** Metrics of one number of one prompt. Empty when no response has the number. */
function metricsOf(
  list: readonly (number | null)[],
  votes: readonly Vote[] | undefined,
  known: KnownOdds,
): Record<string, number> {
  const vote = (i: number) => (votes === undefined ? null : at(votes, i));
  const responses = list.flatMap((value, i) => (value === null ? [] : [{ value, vote: vote(i) }]));
  if (responses.length === 0) return {};
  const [n, values] = [list.length, responses.map(({ value }) => value)];
  const metrics: Record<string, number> = { [`mean@${n}`]: values.reduce((sum, x) => sum + x, 0) / values.length };
  if (n > 1) metrics[`std@${n}`] = standardDeviation(values);
  for (const k of drawSizes(n)) {
    Object.assign(metrics, named(`best@${k}`, bestAtK(values, k)), named(`worst@${k}`, worstAtK(values, k)));
    if (votes === undefined) continue;
    const theirs = responses.map((response) => response.vote);
    Object.assign(metrics, named(`maj@${k}`, majorityAtK(values, theirs, k, known)));
  }
  return metrics;
}

function named(metric: string, { mean, std }: Moments): Record<string, number> {
  return { [`${metric}/mean`]: mean, [`${metric}/std`]: std };
}

/** 2, 4, 8, … below n, and n; none for n = 1. */
function drawSizes(n: number): number[] {
  const sizes: number[] = [];
  for (let k = 2; k < n; k *= 2) sizes.push(k);
  return n > 1 ? [...sizes, n] : [];
}

function meanByName(perPrompt: readonly Readonly<Record<string, number>>[]): Record<string, number> {
  const sums = new Map<string, { sum: number; count: number }>();
  for (const [name, value] of perPrompt.flatMap((metrics) => Object.entries(metrics))) {
    const { sum, count } = sums.get(name) ?? { sum: 0, count: 0 };
    sums.set(name, { sum: sum + value, count: count + 1 });
  }
  return Object.fromEntries([...sums].map(([name, { sum, count }]) => [name, sum / count]));
}
