/** Live notes about the jobs of one stage: their sum, as one number for users who watch the run. */
import { liveNote } from '../live-note.ts';
import type { ActivityPorts } from '../ports/index.ts';

export type OnJobProgress = (jobId: string, done: number, total: number, queued: string | undefined) => void;

export interface WatchedStage {
  readonly runId: string;
  readonly stage: string;
  /** Number of the iteration that the stage belongs to. */
  readonly iteration: number;
  /** Number of jobs in the stage, including those that have not reported yet. */
  readonly jobs: number;
  readonly unit: 'tokens' | 'samples';
}

export function stageProgress(ports: Pick<ActivityPorts, 'live'>, watched: WatchedStage): OnJobProgress {
  const { runId, stage, iteration, jobs, unit } = watched;
  const reports = new Map<string, { done: number; total: number }>();
  return (jobId, done, total, queued) => {
    reports.set(jobId, { done, total });
    const reported = [...reports.values()];
    const sum = { done: sumOf(reported.map((one) => one.done)), total: sumOf(reported.map((one) => one.total)) };
    // A job that has not reported yet counts as large as the others.
    const expected = sum.total * (jobs / reported.length);
    ports.live(runId, liveNote(stage, iteration, { done: sum.done, total: expected, note: unit }, queued));
  };
}

function sumOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0);
}
