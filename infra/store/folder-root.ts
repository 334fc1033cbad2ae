/**
 * The root of a folder store. It may vanish while processes have it open: a disk is unmounted, somebody moves or removes it.
 * What is not found there says nothing then, and nothing may be written where a disk is to be mounted.
 */
import { existsSync } from 'node:fs';
import { mkdir, stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { InvalidInputError, RetryableError } from '../../core/errors.ts';
import type { RunId } from '../../core/ids.ts';
import { keys } from '../../core/records/keys.ts';

/** `refuse`: whoever serves a store does not make one. */
export type WhenMissing = 'make' | 'refuse';

/** What stands in the way of making a folder is the caller's to mend; a full disk is told as such. */
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

export class FolderRoot {
  readonly path: string;
  /** Which folder it is: another may lie at this path later. A file system may give that one the same number. */
  #identity: string;
  /** Work never goes from a store: a folder without any is not the one that held some. */
  #heldWork: boolean;

  private constructor(path: string, identity: string) {
    this.path = path;
    this.#identity = identity;
    this.#heldWork = holdsWork(path);
  }

  /** Throws InvalidInputError for what can be no folder, RetryableError `StoreGone` for one that is not there and not to be made. */
  static async open(folder: string, whenMissing: WhenMissing = 'make'): Promise<FolderRoot> {
    const path = resolve(folder); // one store has one name, whatever stands at its end
    if (whenMissing === 'make') await FolderRoot.#make(path);
    const found = await stat(path).catch(undefinedIfAbsent);
    if (found === undefined) throw storeGone(path);
    return new FolderRoot(path, identityOf(found));
  }

  static async #make(path: string): Promise<void> {
    try {
      await makeFolders(path);
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

  /** Makes what is missing of a folder inside. Throws RetryableError `StoreGone`. */
  async makeInside(folder: string): Promise<void> {
    if (folder === this.path || dirname(folder) === this.path) await this.ensureThere();
    await makeFolders(folder, (parent) => this.makeInside(parent));
    this.#heldWork ||= holdsWork(this.path);
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

/** Not mkdir's own recursion, which never ends where a file system has no room for names, like /proc. */
async function makeFolders(folder: string, makeParent: (parent: string) => Promise<void> = makeFolders): Promise<void> {
  if (await isMade(folder)) return;
  await makeParent(dirname(folder));
  if (!(await isMade(folder))) await mkdir(folder);
}

/** False when its parent is not there. */
async function isMade(folder: string): Promise<boolean> {
  try {
    await mkdir(folder);
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
