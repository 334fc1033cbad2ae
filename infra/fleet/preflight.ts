/** What a machine checks of the store before it joins, so that no job of a run has to find out. */
import { errorToJson, RetryableError, TerminalError } from '../../core/errors.ts';
import type { Store } from '../../core/ports/store.ts';
import { keys } from '../../core/records/keys.ts';
import { sha256 } from '../../log/objects/digest.ts';

/** No run has this name. Its blobs may be created by whoever may create those of runs. */
const folder = 'preflight';
const bytes = new TextEncoder().encode('a machine that joins may create blobs here\n');

/** Every machine writes the same object. Throws TerminalError `StoreNotWritable` when the store refuses it. */
export async function requireWritable(store: Store): Promise<void> {
  const key = keys.blob(folder, sha256(bytes));
  try {
    await store.put(key, bytes);
  } catch (cause) {
    if (cause instanceof RetryableError) throw cause;
    throw new TerminalError(
      'StoreNotWritable',
      `expected a store in which this machine may create results, got ${store.url}: ${errorToJson(cause).message}`,
      {
        where: key,
        hint: `petrel fleet policy --store ${store.url} on the control machine prints what its credential must allow`,
        cause,
      },
    );
  }
}
