/** What retention has decided about a run, read from its entries: only these entries excuse a missing object. */
import type { Objects } from './objects.ts';
import { retentionShape } from './records.ts';

export interface Retention {
  /** No resume or fork can start before this position. */
  readonly floor: number;
  /** Every key that an entry has marked for removal. */
  readonly marked: ReadonlySet<string>;
  /** Checkpoints that retention verified and keeps. */
  readonly verified: readonly string[];
}

/**
 * Entries are numbered from 1 without gaps. They are read after everything else, because a running janitor only adds
 * entries.
 */
export async function readRetention(objects: Objects, runId: string): Promise<Retention> {
  const marked = new Set<string>();
  const highest = await highestOf(objects);
  let [floor, verified]: [number, readonly string[]] = [0, []];
  for (let n = 1; ; n++) {
    const entry = await objects.find(objects.keys.retention(n), retentionShape);
    if (entry.type === 'absent') {
      if (n > highest) return { floor, marked, verified };
      objects.faults.add(entry.key, `an entry: there are entries up to ${highest}`, 'nothing');
    }
    if (entry.type !== 'read') continue;
    objects.faults.equal(entry.key, 'runId', runId, entry.record.runId);
    objects.faults.equal(entry.key, 'n', n, entry.record.n);
    for (const key of entry.record.condemned) marked.add(key);
    ({ floor, verified } = entry.record);
  }
}

/** The listing only shows that later entries exist after a hole. */
async function highestOf({ store, keys }: Objects): Promise<number> {
  const numbers = (await store.children(keys.retentions)).map((name) => Number(name.replace('.json', '')));
  return numbers.filter(Number.isSafeInteger).reduce((highest, n) => Math.max(highest, n), 0);
}
