/** The state of a standby, from the result of its last update. */
import { z } from 'zod';
import { damage } from '../../core/records/damage.ts';
import { keys } from '../../core/records/keys.ts';
import { resultRecord } from '../../core/records/schema.ts';
import { claimKeyOf } from '../objects/claim-key.ts';
import { needRecord } from '../objects/records.ts';
import { requireProof } from '../objects/result-proof.ts';
import type { RunLog } from './run-log.ts';
import type { StandbyStart } from './terms.ts';

const updated = z.object({
  stateDigest: z.string(),
  components: z.record(z.string(), z.object({ stateDigest: z.string(), weightsDigest: z.string() })),
});

/**
 * `key`: of the result; `process`: who asks. Throws PauseError `MissingRecord`, or `DamagedRecord` also for a result
 * that no worker of the stack has written.
 */
export async function standbyStart({ store, runId }: RunLog, key: string, process: string): Promise<StandbyStart> {
  const { record } = await needRecord(store, key, resultRecord);
  const { jobId } = record;
  if (key !== keys.result(runId, jobId)) throw damage('DamagedRecord', key, `expected its own job, found ${jobId}`);
  requireProof(await claimKeyOf(store, process), runId, jobId, record);
  const output = updated.safeParse(record.output);
  if (!output.success || record.stage !== 'update')
    throw damage('DamagedRecord', key, `expected the result of an update, found one of ${record.stage}`);
  return { result: jobId, ...output.data } as StandbyStart;
}
