/**
 * The root of a folder store. It may vanish while processes have it open: a disk is unmounted, somebody moves or removes it.
 * What is not found there says nothing then, and nothing may be written where a disk is to be mounted.
 */
import { existsSync } from 'node:fs';
import type { Stats } from 'node:fs';
import { mkdir, open, stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { InvalidInputError, RetryableError } from '../../core/errors.ts';
import type { RunId } from '../../core/ids.ts';
import { keys } from '../../core/records/keys.ts';
import { becomeStore } from './store-folder.ts';

/** `refuse`: whoever serves a store does not make one. */
export type WhenMissing = 'make' | 'refuse';

/** Explains why a folder could not be created: the user must fix the path, or free space when the disk is full. */
const unfit: ReadonlySet<unknown> = new Set([
  'EEXIST',
  'ENOTDIR',
  'EACCES',
  'EPERM',
  'EROFS',
  'ENOENT',
  'EINVAL',
  'ELOOP',
  'ENAMETOOLONG',
  'ENOTSUP',
  'ENODEV',
  'ENXIO',
]);

/** Modes of what is made. */
export interface Rights {
  readonly folder: number;
  readonly file: number;
}

const ownerOnly: Rights = { folder: 0o700, file: 0o600 };
/** Somebody opened the store to a group or to all: the umask says what others may do. */
const byUmask: Rights = { folder: 0o777, file: 0o666 };

export class FolderRoot {
  readonly path: string;
  /** Of what is made inside: as narrow as those of the root. */
  readonly rights: Rights;
  /** Which folder it is: another may lie at this path later. A file system may give that one the same number. */
  #identity: string;
  /** Work never goes from a store: a folder without any is not the one that held some. */
  #heldWork: boolean;
  /** Folders whose names survive a power cut once `synced`. One that was removed and made again has another identity. */
  readonly #names = new Map<string, { readonly identity: string; readonly synced: Promise<void> }>();

  private constructor(path: string, found: Stats) {
    this.path = path;
    this.rights = (found.mode & 0o077) === 0 ? ownerOnly : byUmask;
    this.#identity = identityOf(found);
    this.#heldWork = holdsWork(path);
  }

  /** Throws InvalidInputError for what can be no folder, RetryableError `StoreGone` for one that is not there and not to be made. */
  static async open(folder: string, whenMissing: WhenMissing = 'make'): Promise<FolderRoot> {
    const path = resolve(folder); // one store has one name, whatever stands at its end
    if (whenMissing === 'make') await FolderRoot.#make(path);
    const found = await stat(path).catch(undefinedIfAbsent);
    if (found === undefined) throw storeGone(path);
    return new FolderRoot(path, found);
  }

  static async #make(path: string): Promise<void> {
    try {
      await makeAbove(path, ownerOnly.folder);
      await becomeStore(path);
      await syncFolder(path);
    } catch (error) {
      if (!unfit.has(codeOf(error))) throw error;
      throw new InvalidInputError(
        `store: expected a folder that is there or can be made, found that ${path} cannot be made: ${(error as Error).message.split(',')[0]}`,
        {
          hint: 'store: a folder that you may write to, or s3://bucket/prefix',
          cause: error,
        },
      );
    }
  }

  /**
   * Makes what is missing of a folder inside. Its name and those of the folders above it survive a power cut when this
   * returns, whoever made them. Throws RetryableError `StoreGone`.
   */
  async makeInside(folder: string): Promise<void> {
    if (folder === this.path || dirname(folder) === this.path) await this.ensureThere();
    await makeFolders(folder, (parent) => this.makeInside(parent), this.rights.folder);
    await this.#syncNames(folder);
    this.#heldWork ||= holdsWork(this.path);
  }

  /** The names in a folder inside, and of the folders above it, survive a power cut when this returns. A removed folder has none. */
  async syncInside(folder: string): Promise<void> {
    try {
      await this.#syncNames(folder);
      await syncFolder(folder);
    } catch (error) {
      undefinedIfAbsent(error);
      await this.ensureThere();
    }
  }

  /** Of the folder itself and those above it, up to the root. */
  async #syncNames(folder: string): Promise<void> {
    if (folder === this.path) return;
    const { dev, ino, birthtimeMs } = await stat(folder);
    const identity = `${dev} ${ino} ${birthtimeMs}`;
    const known = this.#names.get(folder);
    if (known?.identity === identity) return known.synced;
    const synced = this.#syncNames(dirname(folder)).then(() => syncFolder(dirname(folder)));
    this.#names.set(folder, { identity, synced });
    synced.catch(() => this.#names.delete(folder));
    return synced;
  }

  /**
   * Asked whenever something is not found. Throws RetryableError `StoreGone` when the folder is not there, or another one
   * without work is in its place: where a disk is not mounted. One that was put back from a copy is the store again.
   */
  async ensureThere(): Promise<void> {
    const found = await stat(this.path).catch(undefinedIfAbsent);
    if (found === undefined) throw storeGone(this.path);
    const holds = holdsWork(this.path);
    if (!holds && (this.#heldWork || identityOf(found) !== this.#identity)) throw storeGone(this.path);
    this.#identity = identityOf(found);
    this.#heldWork ||= holds;
  }
}

/** Runs or schedules. False for a new store, and for the place of a disk that is not mounted. */
export function holdsWork(folder: string): boolean {
  return existsSync(join(folder, keys.runs)) || existsSync(join(folder, keys.schedules));
}

/** It may be back at any moment: whoever asked asks again. */
export function storeGone(where: string): RetryableError {
  return new RetryableError('StoreGone', `the store ${where} is gone`, { hint });
}

/** Another folder, of other runs, may lie in the place of its store. */
export function runGone(runId: RunId, store: string): RetryableError {
  return new RetryableError('StoreGone', `${runId} is not in the store ${store}`, { hint });
}

const hint = 'mount its disk, or move the folder, or a whole copy, back into its place: then it goes on';

/** The names of the folders that it makes survive a power cut, and the last name always: another process may have made that folder and died. */
async function makeAbove(folder: string, mode = byUmask.folder): Promise<void> {
  await makeFolders(folder, (parent) => makeAbove(parent), mode);
  await syncFolder(dirname(folder)).catch((error: unknown) => {
    // A folder that its user may not read was not made by petrel: neither was what lies in it.
    if (codeOf(error) !== 'EACCES') throw error;
  });
}

/** The names in a folder survive a power cut when this returns. */
export async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Not mkdir's own recursion, which never ends where a file system has no room for names, like /proc. */
async function makeFolders(folder: string, makeParent: (parent: string) => Promise<void>, mode: number): Promise<void> {
  if (await isMade(folder, mode)) return;
  await makeParent(dirname(folder));
  if (!(await isMade(folder, mode))) await mkdir(folder, mode);
}

/** False when its parent is not there. */
async function isMade(folder: string, mode: number): Promise<boolean> {
  try {
    await mkdir(folder, mode);
    return true;
  } catch (error) {
    if (codeOf(error) === 'ENOENT' && dirname(folder) !== folder) return false;
    if (codeOf(error) === 'EEXIST' && (await stat(folder).catch(undefinedIfAbsent))?.isDirectory() === true)
      return true;
    throw error;
  }
}

const identityOf = ({ dev, ino }: { readonly dev: number; readonly ino: number }): string => `${dev} ${ino}`;

const codeOf = (error: unknown): unknown => (error instanceof Error && 'code' in error ? error.code : undefined);

function undefinedIfAbsent(error: unknown): undefined {
  if (codeOf(error) === 'ENOENT' || codeOf(error) === 'ENOTDIR') return undefined;
  throw error;
}
