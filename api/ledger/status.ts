/** Reads the status entries of a run, a sequence without gaps. The newest entry is valid. */
import type { Objects } from './objects.ts';
import { statusShape } from './records.ts';

/**
 * State of the newest entry; `unknown` before the first entry. The listing only shows that later entries exist after a
 * hole.
 */
export async function readState(objects: Objects, runId: string): Promise<string> {
  const listed = (await objects.store.children(objects.keys.statuses))
    .map((name) => Number(name.replace('.json', '')))
    .filter((n) => Number.isSafeInteger(n) && n >= 1);
  const highest = listed.reduce((most, n) => Math.max(most, n), 0);
  let state = 'unknown';
  for (let n = 1; ; n++) {
    const entry = await objects.find(objects.keys.status(n), statusShape);
    if (entry.type === 'absent') {
      if (n > highest) return state;
      objects.faults.add(entry.key, `an entry: there are entries up to ${highest}`, 'nothing');
      const gap = n;
      n = listed.reduce((next, later) => (later > gap ? Math.min(next, later) : next), highest + 1) - 1;
    } else if (entry.type === 'read') {
      objects.faults.equal(entry.key, 'runId', runId, entry.record.runId);
      objects.faults.equal(entry.key, 'n', n, entry.record.n);
      state = entry.record.state;
    }
  }
}
