/** What the jobs of a real run had as results, so that workers can play the same run without computing. */
import { z } from 'zod';
import type { RunId } from '../../core/ids.ts';
import type { Store } from '../../core/ports/store.ts';
import { keys } from '../../core/records/keys.ts';
import { resultRecord } from '../../core/records/schema.ts';
import type { JobMessage } from '../../core/wire/messages.ts';
import { needRecord } from '../../log/objects/records.ts';

/** Recorded jobs, by `jobName`. */
export const recording = z.object({
  runId: z.string(),
  outputs: z.record(z.string(), z.record(z.string(), z.unknown())),
});
export type Recording = z.infer<typeof recording>;

/** The same for the same job of any run of the recipe. */
export function jobName({ stage, at, input }: Pick<JobMessage, 'stage' | 'at' | 'input'>): string {
  return `${stage} ${at.iteration} ${JSON.stringify(input['draws'] ?? input['trajectories'] ?? null)}`;
}

/** `jobs`: all jobs of the run. */
export async function record(store: Store, runId: RunId, jobs: readonly JobMessage[]): Promise<Recording> {
  const outputs: Recording['outputs'] = {};
  for (const job of jobs) {
    const { record: found } = await needRecord(store, keys.result(runId, job.jobId), resultRecord);
    outputs[jobName(job)] = { ...found.output };
  }
  return { runId, outputs };
}
