/** The most responses in one forward pass of a run's updates, from its batches. */
import { at } from '../../core/at.ts';
import type { RunLog } from '../../log/run/run-log.ts';
import { openBatch } from '../../workers/engine/samples/stored-batch.ts';

export async function largestPass(log: RunLog): Promise<number> {
  let most = 0;
  for await (const { batch } of log.iterations()) {
    const { microOffsets_M1 } = (await openBatch(log.store, log.runId, batch.record, batch.key)).index;
    for (let m = 1; m < microOffsets_M1.length; m++)
      most = Math.max(most, at(microOffsets_M1, m) - at(microOffsets_M1, m - 1));
  }
  return most;
}
