/** The state of a standby, from the result of its last update. */
import { z } from 'zod';
import { damage } from '../../core/damage.ts';
import { resultRecord } from '../../core/records/schema.ts';
import { needRecord } from './records.ts';
import type { RunLog } from './run-log.ts';
import type { StandbyStart } from './terms.ts';

const updated = z.object({
  stateDigest: z.string(),
  components: z.record(z.string(), z.object({ stateDigest: z.string(), weightsDigest: z.string() })),
});

/** `key`: of the result. Throws PauseError `MissingRecord` or `DamagedRecord`. */
export async function standbyStart({ store }: RunLog, key: string): Promise<StandbyStart> {
  const { record } = await needRecord(store, key, resultRecord);
  const output = updated.safeParse(record.output);
  if (!output.success || record.stage !== 'update')
    throw damage('DamagedRecord', key, `expected the result of an update, found one of ${record.stage}`);
  return { result: record.jobId, ...output.data } as StandbyStart;
}
