/**
 * Memory that a process shares with its children: a file without a name, whose descriptor they inherit and map. This
 * process reads and writes it with system calls, which copy straight between it and an array.
 */
import { closeSync, fstatSync, ftruncateSync, openSync, readSync, statfsSync, unlinkSync, writeSync } from 'node:fs';
import { randomBytes } from 'node:crypto';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const zeros = new Uint8Array(1 << 20);

export class SharedMemory {
  readonly fd: number;
  readonly #folder: string;
  #bytes = 0;
  /** Who has not closed it yet. */
  #users = 1;

  /** The file lies in memory where the machine lets it, else in the folder for temporary files. */
  constructor(folders: readonly string[] = ['/dev/shm', tmpdir()]) {
    [this.fd, this.#folder] = openNameless(folders);
  }

  /**
   * It has at least so many bytes from now on. They are taken at once: a process that touches a page for which there is
   * no memory would be killed.
   */
  grow(bytes: number): void {
    while (this.#bytes < bytes) {
      const part = Math.min(zeros.length, bytes - this.#bytes);
      this.#bytes += writeSync(this.fd, zeros, 0, part, this.#bytes);
    }
  }

  /**
   * It has at least so many bytes from now on; what was never written is 0. They are taken as they are written, so
   * nobody may map them. Returns false, and changes nothing, where the machine has no room for them.
   */
  reserve(bytes: number): boolean {
    const { bavail, bsize } = statfsSync(this.#folder);
    if (bytes - fstatSync(this.fd).blocks * 512 > bavail * bsize) return false;
    if (bytes > this.#bytes) ftruncateSync(this.fd, (this.#bytes = bytes));
    return true;
  }

  write(at: number, from: NodeJS.ArrayBufferView): void {
    for (let done = 0; done < from.byteLength; )
      done += writeSync(this.fd, from, done, Math.min(from.byteLength - done, 1 << 30), at + done);
  }

  read(at: number, into: NodeJS.ArrayBufferView): void {
    readShared(this.fd, at, into);
  }

  /** Another user of it, who has its descriptor until the returned function is called once. */
  share(): () => void {
    this.#users++;
    return () => this.close();
  }

  close(): void {
    if (--this.#users === 0) closeSync(this.fd);
  }
}

/** Reads shared memory from byte `at` on, in any thread of a process that has its descriptor. */
export function readShared(fd: number, at: number, into: NodeJS.ArrayBufferView): void {
  for (let done = 0; done < into.byteLength; ) {
    const count = readSync(fd, into, done, Math.min(into.byteLength - done, 1 << 30), at + done);
    if (count === 0) throw new Error(`shared memory ends at ${at + done}, before ${at + into.byteLength}`);
    done += count;
  }
}

/** Free bytes that a folder must have to be chosen. A container's /dev/shm has 64 MB by default. */
const roomNeeded = 1 << 30;

function openNameless(folders: readonly string[]): [fd: number, folder: string] {
  for (const [i, folder] of folders.entries()) {
    const isLast = i === folders.length - 1;
    try {
      const { bavail, bsize } = statfsSync(folder);
      if (!isLast && bavail * bsize < roomNeeded) continue;
      const path = join(folder, `petrel-${process.pid}-${randomBytes(6).toString('hex')}`);
      const fd = openSync(path, 'wx+', 0o600);
      unlinkSync(path);
      return [fd, folder];
    } catch (error) {
      if (isLast) throw error;
    }
  }
  throw new Error('shared memory needs a folder');
}
