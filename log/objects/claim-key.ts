/** The key of a store from which secrets of claims are derived: the first control process that needs it makes it. */
import { randomBytes } from 'node:crypto';
import type { Store } from '../../core/ports/store.ts';
import { keys } from '../../core/records/keys.ts';
import { claimKey, recordFormat } from '../../core/records/schema.ts';
import type { ClaimKey, Writer } from '../../core/records/schema.ts';
import { decide, readRecord } from './records.ts';

/**
 * Hexadecimal. The same for every control process of the store, so that one may use the results that another asked for.
 */
export async function claimKeyOf(store: Store, process: string): Promise<string> {
  const found = await readRecord(store, keys.claimKey, claimKey);
  if (found !== undefined) return found.record.key;
  const writer: Writer = { process, at: new Date().toISOString() };
  const made: ClaimKey = { format: recordFormat, key: randomBytes(32).toString('hex'), writer };
  return (await decide(store, keys.claimKey, claimKey, made, () => true)).record.key;
}
