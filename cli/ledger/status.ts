/** The state entries of a run, a dense sequence: the newest counts. */
import type { Objects } from './objects.ts';
import { statusShape } from './records.ts';

/** State of the newest entry; `unknown` before there is one. */
export async function readState(objects: Objects, runId: string): Promise<string> {
  let state = 'unknown';
  for (let n = 1; ; n++) {
    const entry = await objects.find(objects.keys.status(n), statusShape);
    if (entry.type === 'absent') return state;
    if (entry.type !== 'read') continue;
    objects.faults.equal(entry.key, 'runId', runId, entry.record.runId);
    objects.faults.equal(entry.key, 'n', n, entry.record.n);
    state = entry.record.state;
  }
}
