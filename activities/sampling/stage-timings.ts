/** The times and speeds in the records of an iteration. They are measured, so two runs never have the same. */
import { restoreMetrics } from '../../core/metrics.ts';
import type { BatchRecord, ResultRecord } from '../../core/records/schema.ts';
import { throughputMetrics, timingPerToken } from '../../core/timing-metrics.ts';
import type { JobResult } from '../../core/ports/jobs.ts';
import type { ScoredRollout } from '../scored-jobs.ts';
import { joinSpans, seconds, spanOf } from '../spans.ts';

type Timings = Record<string, number>;

/** `made`: the job that made the batch. `now`: when it is committed, in ms. */
export function batchTimings(
  scored: readonly Pick<ScoredRollout, 'rollout' | 'reward'>[],
  made: Pick<JobResult<'advantage'>, 'timings' | 'endedAt'>,
  now: number,
): Timings {
  const rollouts = joinSpans(scored.map(({ rollout }) => rollout.span));
  const first = scored.length === 0 ? spanOf('advantage', made) : rollouts;
  return {
    ...addTimings(jobTimings(scored), made.timings),
    ...seconds('timing_s/gen', rollouts),
    ...seconds('timing_s/reward', joinSpans(scored.map(({ reward }) => reward.span))),
    ...seconds('timing_s/batch', first && { from: first.from, until: now }),
  };
}

/** `now`: when the update is committed, in ms. */
export function updateTimings(batch: BatchRecord, update: ResultRecord['timings'], now: number): Timings {
  const own = addTimings(update);
  return { ...own, ...restores(batch, own), ...speed(batch, own, now) };
}

/** What restored states have cost: the sum of all jobs of the iteration. */
function restores({ adopted, timings }: BatchRecord, update: Timings): Timings {
  const made = adopted === undefined ? timings : {};
  return Object.fromEntries(restoreMetrics.map((name) => [name, Number(made[name] ?? 0) + Number(update[name] ?? 0)]));
}

/** Empty for a batch of another term or an older petrel, because its time is unknown. */
function speed({ adopted, timings, metrics, writer }: BatchRecord, update: Timings, now: number): Timings {
  const made = Number(timings['timing_s/batch'] ?? Number.NaN);
  const step = made + Math.max(0, now - Date.parse(writer.at)) / 1000;
  if (adopted !== undefined || !(step > 0)) return {};
  const tokens = {
    all: Number(metrics['training/tokens'] ?? 0),
    response: Number(metrics['training/response_tokens'] ?? 0),
  };
  return {
    ...timingPerToken(secondsByStage({ ...timings, ...update }), tokens),
    'timing_s/step': step,
    // verl divides by the number of GPUs. A run's machines may come and go, so they count as one.
    ...throughputMetrics({ tokens: tokens.all, seconds: step, devices: 1 }),
    'perf/response_throughput': tokens.response / step,
  };
}

/** The names without `timing_s/`. */
function secondsByStage(timings: BatchRecord['timings']): Timings {
  const prefix = 'timing_s/';
  const times = Object.entries(timings).filter(([name]) => name.startsWith(prefix));
  return Object.fromEntries(times.map(([name, value]) => [name.slice(prefix.length), Number(value)]));
}

/** What the rollout and reward jobs took, summed by name. */
export function jobTimings(scored: readonly Pick<ScoredRollout, 'rollout' | 'reward'>[]): Timings {
  return addTimings(...scored.flatMap(({ rollout, reward }) => [rollout.timings, reward.timings]));
}

/** Sums by name, in seconds. */
function addTimings(...all: readonly ResultRecord['timings'][]): Timings {
  const sums: Timings = {};
  for (const timings of all)
    for (const [name, value] of Object.entries(timings)) sums[name] = (sums[name] ?? 0) + Number(value);
  return sums;
}
