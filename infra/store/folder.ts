/**
 * A folder as object store. `create` uses link(2), which succeeds for exactly one of several writers. Objects that
 * `create` and `put` have written survive a power cut: docs/decisions/0009-power-cuts.md.
 */
import { createReadStream, createWriteStream } from 'node:fs';
import { link, open, readdir, rename, rm, stat, statfs, unlink } from 'node:fs/promises';
import { randomBytes } from 'node:crypto';
import { dirname, join, relative, sep } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { pathToFileURL } from 'node:url';
import { InvalidInputError } from '../../core/errors.ts';
import type { Store } from '../../core/ports/store.ts';
import { ballastName, releaseBallast } from './ballast.ts';
import { removeBelow, removeFile, removeLeftovers } from './folder-removal.ts';
import { FolderRoot, syncFolder } from './folder-root.ts';
import type { WhenMissing } from './folder-root.ts';
import { diskFull, freeSpaceFloor, isFull } from '../../log/objects/free-space.ts';
import { checkKey } from './key.ts';
import { SeenFolders } from './seen-folders.ts';
import { markerName } from './store-folder.ts';

/** statfs magic numbers of file systems whose link(2) or fsync cannot be trusted between machines. */
const networkFileSystems: Readonly<Record<number, string>> = {
  26985: 'NFS',
  4283649346: 'CIFS',
  4266872130: 'SMB',
  20859: 'SMB',
  1702057286: 'FUSE',
  12805120: 'Ceph',
  16914839: '9P',
};

const temporaryPrefix = '.tmp-';

/** Opens a folder store. Throws InvalidInputError for a network file system. */
export async function openFolderStore(folder: string, whenMissing?: WhenMissing): Promise<Store> {
  const root = await FolderRoot.open(folder, whenMissing);
  const network = networkFileSystems[(await statfs(root.path)).type];
  if (network !== undefined) {
    throw new InvalidInputError(
      `The store ${folder} lies on a network file system (${network}), which cannot fence writers`,
      {
        hint: 'Use a local folder, or an object store: store: s3://bucket/prefix',
      },
    );
  }
  return new FolderStore(root);
}

class FolderStore implements Store {
  readonly url: string;
  readonly place: string;
  readonly #root: FolderRoot;
  readonly #seen: SeenFolders;

  constructor(root: FolderRoot) {
    this.#root = root;
    this.#seen = new SeenFolders((folder) => root.syncInside(folder));
    this.url = pathToFileURL(root.path).href;
    this.place = this.url;
  }

  localPath(key: string): string {
    return join(this.#root.path, checkKey(key));
  }

  /**
   * Retries a write once after a full disk has freed its reserve (ballast.ts): records are small, and one of them
   * reports the full disk.
   */
  async create(key: string, bytes: Uint8Array, hold?: () => Promise<void>): Promise<'created' | 'exists'> {
    const path = this.localPath(key);
    try {
      return await this.#create(path, bytes, hold);
    } catch (error) {
      if (!isFull(error)) throw error;
      if (!(await releaseBallast(this.#root.path)))
        throw await diskFull('the store', this.#root.path, bytes.byteLength, error);
      return this.create(key, bytes, hold);
    }
  }

  async put(key: string, bytes: Uint8Array | AsyncIterable<Uint8Array>): Promise<void> {
    const path = this.localPath(key);
    try {
      await rename(await this.#writeTemporary(path, bytes), path);
      await syncFolder(dirname(path));
    } catch (error) {
      if (!isFull(error)) throw error;
      throw await diskFull(
        'the store',
        this.#root.path,
        freeSpaceFloor() + (bytes instanceof Uint8Array ? bytes.byteLength : 0),
        error,
      );
    }
  }

  async #create(path: string, bytes: Uint8Array, hold?: () => Promise<void>): Promise<'created' | 'exists'> {
    const [temporary] = await Promise.all([this.#writeTemporary(path, bytes), this.settle()]);
    const outcome = await this.#link(temporary, path, hold);
    await syncFolder(dirname(path)); // also for an existing file: its writer may have died before this step
    return outcome;
  }

  async #link(temporary: string, path: string, hold?: () => Promise<void>): Promise<'created' | 'exists'> {
    try {
      await hold?.();
      await link(temporary, path);
      return 'created';
    } catch (error) {
      if (isErrno(error, 'EEXIST')) return 'exists';
      throw error;
    } finally {
      await unlink(temporary);
    }
  }

  settle(): Promise<void> {
    return this.#seen.sync();
  }

  async get(key: string, range?: readonly [number, number]): Promise<Uint8Array | undefined> {
    try {
      const path = this.localPath(key);
      const file = await open(path);
      this.#seen.add(dirname(path));
      try {
        if (range === undefined) return await file.readFile();
        const buffer = new Uint8Array(range[1] - range[0]);
        const { bytesRead } = await file.read(buffer, 0, buffer.length, range[0]);
        return buffer.subarray(0, bytesRead);
      } finally {
        await file.close();
      }
    } catch (error) {
      return this.#absent(error);
    }
  }

  async stream(key: string): Promise<AsyncIterable<Uint8Array> | undefined> {
    if ((await this.head(key)) === undefined) return undefined;
    return createReadStream(this.localPath(key), { highWaterMark: 4 << 20 });
  }

  async head(key: string): Promise<number | undefined> {
    try {
      const path = this.localPath(key);
      const found = await stat(path);
      if (!found.isFile()) return undefined;
      this.#seen.add(dirname(path));
      return found.size;
    } catch (error) {
      return this.#absent(error);
    }
  }

  async list(prefix: string): Promise<string[]> {
    const base = this.localPath(prefix.slice(0, prefix.lastIndexOf('/') + 1) || '.');
    const found: string[] = [];
    for (const entry of await readdir(base, { recursive: true, withFileTypes: true }).catch((error: unknown) =>
      this.#absent(error).then(() => []),
    )) {
      if (!entry.isFile() || isHidden(entry.name)) continue;
      const key = relative(this.#root.path, join(entry.parentPath, entry.name)).split(sep).join('/');
      if (key.startsWith(prefix)) found.push(key);
    }
    return found.sort();
  }

  async children(prefix: string): Promise<string[]> {
    const entries = await readdir(this.localPath(prefix), { withFileTypes: true }).catch((error: unknown) =>
      this.#absent(error).then(() => []),
    );
    return entries
      .filter((entry) => !isHidden(entry.name))
      .map((entry) => (entry.isDirectory() ? `${entry.name}/` : entry.name))
      .sort();
  }

  async remove(key: string, only: (key: string) => boolean = () => true): Promise<void> {
    const root = this.#root.path;
    const changed = await (key.endsWith('/')
      ? removeBelow(root, checkKey(key), only)
      : removeFile(root, checkKey(key)));
    // A power cut must not keep later writes and undo this removal.
    for (const folder of changed) this.#seen.add(folder);
  }

  removeLeftovers(before: Date): Promise<number> {
    return removeLeftovers(this.#root.path, before);
  }

  /** Throws RetryableError `StoreGone` when the whole store is missing. */
  async #absent(error: unknown): Promise<undefined> {
    absent(error);
    await this.#root.ensureThere();
  }

  /**
   * Writes to a temporary name in the same folder, so that link and rename stay inside one file system. The bytes are
   * durable when this returns.
   */
  async #writeTemporary(path: string, bytes: Uint8Array | AsyncIterable<Uint8Array>): Promise<string> {
    const temporary = join(dirname(path), temporaryPrefix + randomBytes(8).toString('hex'));
    await this.#root.makeInside(dirname(path));
    const mode = this.#root.rights.file;
    try {
      if (bytes instanceof Uint8Array) {
        const file = await open(temporary, 'wx', mode);
        try {
          await file.writeFile(bytes);
          await file.datasync();
        } finally {
          await file.close();
        }
      } else {
        await pipeline(Readable.from(bytes), createWriteStream(temporary, { flags: 'wx', flush: true, mode }));
      }
    } catch (error) {
      await rm(temporary, { force: true });
      throw error;
    }
    return temporary;
  }
}

function isHidden(name: string): boolean {
  return name.startsWith(temporaryPrefix) || name.startsWith(ballastName) || name === markerName;
}

function absent(error: unknown): undefined {
  if (isErrno(error, 'ENOENT') || isErrno(error, 'ENOTDIR') || isErrno(error, 'EISDIR')) return undefined;
  throw error;
}

function isErrno(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}
