/** How long each iteration of a finished run took, from its records and the results of its jobs. */
import { keys } from '../../core/records/keys.ts';
import { resultRecord } from '../../core/records/schema.ts';
import { needRecord } from '../../log/objects/records.ts';
import type { RunLog } from '../../log/run/run-log.ts';
import { coveredMs } from './intervals.ts';
import type { Interval } from './intervals.ts';

export const stages = ['rollout', 'reward', 'advantage', 'update'] as const;
export type BenchStage = (typeof stages)[number];

export interface IterationTimes {
  /** Time from the previous commit to this one. */
  readonly wallMs: number;
  /** Engine and scorer time by stage. */
  readonly stageMs: Readonly<Record<BenchStage, number>>;
  /** Wall time in which neither the engine nor a scorer worked. */
  readonly idleMs: number;
}

/** Iterations in order, without the first `warmUp` (at least one, because its start is not known). */
export async function iterationTimes(log: RunLog, warmUp: number): Promise<IterationTimes[]> {
  const times: IterationTimes[] = [];
  let before: number | undefined;
  for await (const { batch, update } of log.iterations()) {
    const at = Date.parse(update.record.writer.at);
    const jobs = await jobsOf(log, batch.record.results);
    const updateMs = 1000 * Number(update.record.timings['timing_s/update']);
    if (before !== undefined && update.record.iteration > warmUp) {
      const stageMs = (stage: BenchStage) =>
        coveredMs(jobs.filter((job) => job.stage === stage).map((job) => job.interval));
      const wallMs = at - before;
      times.push({
        wallMs,
        stageMs: {
          rollout: stageMs('rollout'),
          reward: stageMs('reward'),
          advantage: stageMs('advantage'),
          update: updateMs,
        },
        idleMs: wallMs - updateMs - coveredMs(jobs.map((job) => job.interval)),
      });
    }
    before = at;
  }
  return times;
}

interface Job {
  readonly stage: string;
  readonly interval: Interval;
}

/** A result record is written when its job ends, and contains the job's seconds. */
function jobsOf(log: RunLog, ids: readonly string[]): Promise<Job[]> {
  return Promise.all(
    ids.map(async (id) => {
      const { stage, timings, writer } = (await needRecord(log.store, keys.result(log.runId, id), resultRecord)).record;
      const end = Date.parse(writer.at);
      return { stage, interval: [end - 1000 * Number(timings[`timing_s/${stage}`]), end] as const };
    }),
  );
}
