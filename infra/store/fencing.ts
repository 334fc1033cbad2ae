/**
 * The stores that passed the fencing probe on this machine. Each store is probed once, when the first run is started
 * there.
 */
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { InvalidInputError } from '../../core/errors.ts';
import type { Store } from '../../core/ports/store.ts';
import { openStoreApart } from './open.ts';
import { probeStore } from './probe.ts';

/**
 * Probes the store with many writers, or with one when it passed before: it may refuse files now. Throws as
 * `checkFences`.
 */
export async function ensureFences(home: string, store: Store): Promise<void> {
  if (seen(home).includes(store.place)) return checkFences(store, 1);
  await checkFences(store);
  remember(home, store.place);
}

/**
 * Probes the store now; a second connection reads. Throws TerminalError `StoreDoesNotFence`, or InvalidInputError for a
 * folder that cannot be written.
 */
export async function checkFences(store: Store, writers?: number): Promise<void> {
  const { store: reader, close } = await openStoreApart(store.url);
  try {
    await probeStore(store, reader, writers);
  } catch (error) {
    if (!(error instanceof Error && 'syscall' in error)) throw error;
    throw new InvalidInputError(`store: expected a writable store; cannot write to ${store.url}: ${error.message}`, {
      hint: 'store: a folder that you may write to, or s3://bucket/prefix',
      cause: error,
    });
  } finally {
    close();
  }
}

const listSchema = z.object({ places: z.array(z.string()) });

const listFile = (home: string): string => join(home, 'fencing-stores.json');

/** An unreadable list counts as empty: another probe costs little. */
function seen(home: string): readonly string[] {
  try {
    return listSchema.parse(JSON.parse(readFileSync(listFile(home), 'utf8'))).places;
  } catch {
    return [];
  }
}

function remember(home: string, place: string): void {
  const temporary = `${listFile(home)}.${process.pid}.tmp`;
  writeFileSync(temporary, `${JSON.stringify({ format: 1, places: [...seen(home), place] }, null, 2)}\n`, {
    mode: 0o600,
  });
  renameSync(temporary, listFile(home));
}
