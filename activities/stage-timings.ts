/** The times and speeds in the records of an iteration. They are measured, so two runs never have the same. */
import type { BatchRecord, ResultRecord } from '../core/records/schema.ts';
import type { JobResult } from '../infra/nats/wait-session.ts';
import type { ScoredRollout } from './sampling/scored-rollouts.ts';
import { joinSpans, seconds, spanOf } from './spans.ts';

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
  return { ...addTimings(update), ...speed(batch, now) };
}

/** Empty for a batch of another term or an older petrel, because its time is unknown. */
function speed({ adopted, timings, metrics, writer }: BatchRecord, now: number): Timings {
  const made = Number(timings['timing_s/batch'] ?? Number.NaN);
  const step = made + Math.max(0, now - Date.parse(writer.at)) / 1000;
  if (adopted !== undefined || !(step > 0)) return {};
  const tokens = Number(metrics['training/tokens'] ?? 0);
  return {
    'timing_s/step': step,
    'perf/total_num_tokens': tokens,
    'perf/throughput': tokens / step,
    'perf/response_throughput': Number(metrics['training/response_tokens'] ?? 0) / step,
  };
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
