/**
 * The root folder of a folder store. It may disappear while processes have it open: a disk is unmounted, or a person
 * moves or removes the folder. Then a missing file proves nothing, and nothing may be written into the empty mount
 * point.
 */
import { existsSync } from 'node:fs';
import type { Stats } from 'node:fs';
import { mkdir, open, stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { InvalidInputError } from '../../core/errors.ts';
import { keys } from '../../core/records/keys.ts';
import { storeGone } from '../../core/store-gone.ts';
import { becomeStore } from './store-folder.ts';

/** `refuse`: a process that serves existing stores never creates one. */
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

/** Modes of new files and folders. */
export interface Rights {
  readonly folder: number;
  readonly file: number;
}

const ownerOnly: Rights = { folder: 0o700, file: 0o600 };
/** The user has opened the store to a group or to everybody: the umask decides. */
const byUmask: Rights = { folder: 0o777, file: 0o666 };

export class FolderRoot {
  readonly path: string;
  /** Modes of new files and folders inside: as restrictive as those of the root. */
  readonly rights: Rights;
  /** Identity of the folder: another one may be at this path later. A file system may reuse the number. */
  #identity: string;
  /** True once the store has held runs or schedules. They are never all removed, so an empty folder is another one. */
  #heldWork: boolean;
  /**
   * Folders whose names have been `synced` and survive a power cut. A folder that was removed and created again has
   * another identity.
   */
  readonly #names = new Map<string, { readonly identity: string; readonly synced: Promise<void> }>();

  private constructor(path: string, found: Stats) {
    this.path = path;
    this.rights = (found.mode & 0o077) === 0 ? ownerOnly : byUmask;
    this.#identity = identityOf(found);
    this.#heldWork = holdsWork(path);
  }

  /**
   * Throws InvalidInputError for a path that cannot be a folder, RetryableError `StoreGone` for a missing one that must
   * not be created.
   */
  static async open(folder: string, whenMissing: WhenMissing = 'make'): Promise<FolderRoot> {
    const path = resolve(folder); // one store has one name, even when the path ends with a slash
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
        `store: expected a folder that exists or can be created; cannot create ${path}: ${(error as Error).message.split(',')[0]}`,
        {
          hint: 'store: a folder that you may write to, or s3://bucket/prefix',
          cause: error,
        },
      );
    }
  }

  /**
   * Creates a folder inside the root. When this returns, its name and those of the folders above it survive a power
   * cut, also if another process created them. Throws RetryableError `StoreGone`.
   */
  async makeInside(folder: string): Promise<void> {
    if (folder === this.path || dirname(folder) === this.path) await this.ensureThere();
    await makeFolders(folder, (parent) => this.makeInside(parent), this.rights.folder);
    await this.#syncNames(folder);
    this.#heldWork ||= holdsWork(this.path);
  }

  /**
   * When this returns, the names in a folder inside, and in the folders above it, survive a power cut. Does nothing for
   * a removed folder.
   */
  async syncInside(folder: string): Promise<void> {
    try {
      await this.#syncNames(folder);
      await syncFolder(folder);
    } catch (error) {
      undefinedIfAbsent(error);
      await this.ensureThere();
    }
  }

  /** The folder itself and those above it, up to the root. */
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
   * Called when a file is not found. Throws RetryableError `StoreGone` when the root is missing or replaced by an empty
   * folder, such as the mount point of an unmounted disk. A restored copy is accepted.
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

/** Does it hold runs, schedules or a fleet? False for a new store and for an empty mount point. */
export function holdsWork(folder: string): boolean {
  return [keys.runs, keys.schedules, keys.fleets].some((name) => existsSync(join(folder, name)));
}

/**
 * Makes the names of the folders that it creates durable, and always the last name, because another process may have
 * created that folder and died before the sync.
 */
async function makeAbove(folder: string, mode = byUmask.folder): Promise<void> {
  await makeFolders(folder, (parent) => makeAbove(parent), mode);
  await syncFolder(dirname(folder)).catch((error: unknown) => {
    // petrel did not create a folder that its user may not read, nor the files in it.
    if (codeOf(error) !== 'EACCES') throw error;
  });
}

/** When this returns, the names in the folder survive a power cut. */
export async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** mkdir's own recursion never ends on a file system that accepts no names, such as /proc. */
async function makeFolders(folder: string, makeParent: (parent: string) => Promise<void>, mode: number): Promise<void> {
  if (await isMade(folder, mode)) return;
  await makeParent(dirname(folder));
  if (!(await isMade(folder, mode))) await mkdir(folder, mode);
}

/** False when the parent folder does not exist. */
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
