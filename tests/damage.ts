/** Damages an object of a folder store, as a disk may do. Each function checks that it had an effect. */
import { readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import type { Store } from '../core/ports/store.ts';

export type Harm = 'bit flip' | 'truncation' | 'loss';

/** `at`: the position in the file, from 0 to 1. */
export function harm(store: Store, key: string, how: Harm, at = 0.5): void {
  const path = store.localPath(key);
  if (path === undefined) throw new Error('only the objects of a folder can be damaged');
  const bytes = readFileSync(path);
  if (bytes.length === 0) throw new Error(`${key} is empty: nothing can be damaged`);
  const byte = Math.min(bytes.length - 1, Math.floor(bytes.length * at));
  if (how === 'loss') rmSync(path);
  else if (how === 'truncation') truncateSync(path, byte);
  else {
    bytes[byte] = (bytes[byte] ?? 0) ^ 1;
    writeFileSync(path, bytes);
  }
}

/** Restores what `harm` damaged, as from a copy of the store. */
export function keepCopy(store: Store, key: string): () => void {
  const path = store.localPath(key) ?? '';
  const bytes = readFileSync(path);
  return () => writeFileSync(path, bytes);
}
