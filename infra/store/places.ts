/** The stores that this machine uses: the default one, and others in which runs were started. */
import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { z } from 'zod';
import { readHomeJson, writeHomeJson } from '../home-json.ts';
import { holdsWork } from './folder-root.ts';
import { storeUrl } from './open.ts';

/** The store that a recipe with `store: null` uses: a folder under PETREL_HOME, or stack.yaml's store. */
export function defaultStore(home: string): string {
  return storeOfStack(home) ?? ownStore(home);
}

const noted = z.object({ store: z.string() });
const noteFile = (home: string): string => join(home, 'stack-store.json');

/** The store that several control machines of the stack have in common; undefined for the stack of one machine. */
const storeOfStack = (home: string): string | undefined => noted.safeParse(readHomeJson(noteFile(home))).data?.store;

/** Called when the stack is configured. undefined: the stack of one machine. */
export function noteStoreOfStack(home: string, url: string | undefined): void {
  if (url === storeOfStack(home)) return;
  if (url === undefined) rmSync(noteFile(home), { force: true });
  else writeHomeJson(noteFile(home), { store: url });
}

const ownStore = (home: string): string => join(home, 'store');

/** A store that may hold runs of this machine. */
export interface KnownStore {
  readonly url: string;
  /** False: the folder does not exist (any more). */
  readonly there: boolean;
}

/** The default store first, then the others in the order of their first use. */
export function knownStores(home: string): KnownStore[] {
  const shared = storeOfStack(home);
  const own = pathToFileURL(ownStore(home)).href;
  const first = shared === undefined ? [own] : [shared, ...(isThere(own) ? [own] : [])];
  return [...new Set([...first, ...remembered(home)])].map((url) => ({ url, there: isThere(url) }));
}

/** The known stores that every control machine of the stack reaches: without the folders of one of several machines. */
export function storesOfStack(home: string): KnownStore[] {
  const shared = storeOfStack(home);
  return knownStores(home).filter(
    ({ url }) => shared === undefined || isPaidByRequest(url) === isPaidByRequest(shared),
  );
}

/**
 * Adds a store to the list. Another process may write the list at the same time, so the file is replaced as a whole and
 * read back, and a lost entry is added again.
 */
export function rememberStore(home: string, url: string): void {
  const file = listFile(home);
  for (let attempt = 0; attempt < 5; attempt++) {
    const known = remembered(home);
    if (known.includes(url) || url === storeUrl(defaultStore(home))) return;
    writeHomeJson(file, { format: 1, stores: [...known, url] });
  }
}

const listSchema = z.object({ stores: z.array(z.string()) });

const listFile = (home: string): string => join(home, 'stores.json');

/**
 * The stack serves these stores only. A list that is no list counts as empty; throws RetryableError `HomeUnreadable`
 * for one that cannot be read.
 */
function remembered(home: string): readonly string[] {
  return listSchema.safeParse(readHomeJson(listFile(home))).data?.stores ?? [];
}

/** A bucket: pollers look less often, because each look costs requests. */
export function isPaidByRequest(url: string): boolean {
  return !url.startsWith('file:');
}

/**
 * Does the store hold a run or a schedule? For processes that serve them: an empty folder may be the mount point of a
 * disk that is not mounted.
 */
export function isInUse(url: string): boolean {
  return isPaidByRequest(url) || holdsWork(fileURLToPath(url));
}

/** False for a missing folder: it was moved, or its disk is not mounted. */
function isThere(url: string): boolean {
  return isPaidByRequest(url) || existsSync(fileURLToPath(url));
}
