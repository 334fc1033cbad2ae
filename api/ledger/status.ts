/** The state entries of a run, a dense sequence: the newest counts. */
import type { Objects } from './objects.ts';
import { statusShape } from './records.ts';

/** State of the newest entry; `unknown` before there is one. The listing only says where a hole hides more. */
export async function readState(objects: Objects, runId: string): Promise<string> {
  const listed = (await objects.store.children(objects.keys.statuses))
    .map((name) => Number(name.replace('.json', '')))
    .filter((n) => Number.isSafeInteger(n) && n >= 1);
  const highest = Math.max(0, ...listed);
  let state = 'unknown';
  for (let n = 1; ; n++) {
    const entry = await objects.find(objects.keys.status(n), statusShape);
    if (entry.type === 'absent') {
      if (n > highest) return state;
      objects.faults.add(entry.key, `an entry: there are entries up to ${highest}`, 'nothing');
      n = Math.min(...listed.filter((later) => later > n), highest + 1) - 1;
    } else if (entry.type === 'read') {
      objects.faults.equal(entry.key, 'runId', runId, entry.record.runId);
      objects.faults.equal(entry.key, 'n', n, entry.record.n);
      state = entry.record.state;
    }
  }
}
