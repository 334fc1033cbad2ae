/** The most responses in one forward pass of a run's updates, from its batches. */
import { at } from '../../core/at.ts';
import { getBlob } from '../../infra/store/blobs.ts';
import type { RunLog } from '../../infra/store/run-log.ts';
import { decodeBatch } from '../../models/batch-tensors.ts';

export async function largestPass(log: RunLog): Promise<number> {
  let most = 0;
  for await (const { batch } of log.iterations()) {
    const { tensors } = batch.record;
    const { microOffsets_M1 } = decodeBatch(await getBlob(log.store, log.runId, tensors), tensors);
    for (let m = 1; m < microOffsets_M1.length; m++)
      most = Math.max(most, at(microOffsets_M1, m) - at(microOffsets_M1, m - 1));
  }
  return most;
}
