/**
 * A disk after a power cut, from the calls that were made before it. What is assumed is what POSIX grants, which is
 * less than ext4 does:
 *
 * - The bytes of a file survive when a sync of the file began after they were written and has ended. Otherwise the file
 *   may be empty, be full of zeros, or end early.
 * - A name in a folder survives when a sync of that folder began after the name was made and has ended. Syncing the
 *   file that it names does not help.
 * - Changes to a folder that were not synced survive in any combination that keeps the order of changes to one name. A
 *   rename inside a folder happens whole or not at all.
 */
import { basename, dirname, join, relative } from 'node:path';
import type { Call, Recording } from './calls.ts';

/** How much survives of a file's bytes that were not synced. */
export type Bytes = 'all' | 'none' | 'zeros' | 'half';

/** Which changes survived the cut although they were not synced. */
export interface Spared {
  readonly name: string;
  readonly change: (change: FolderChange) => boolean;
  readonly bytes: (inode: string) => Bytes;
}

export interface FileLeft {
  readonly path: string;
  readonly inode: string;
  /** Number of bytes that are as they were written. */
  readonly written: number;
  /** Number of zero bytes after them. */
  readonly zeros: number;
}

export interface DiskState {
  readonly folders: readonly string[];
  readonly files: readonly FileLeft[];
}

type Entry = { readonly type: 'folder' } | { readonly type: 'file'; readonly inode: string };

export interface FolderChange {
  readonly folder: string;
  /** A name that was set to an entry, or removed. A rename has two of these. */
  readonly names: readonly (readonly [name: string, entry: Entry | undefined])[];
  readonly begin: number;
  /** The line from which on it survives a cut; infinite when it was never synced. */
  readonly durable: number;
}

interface Written {
  readonly bytes: number;
  readonly begin: number;
  readonly durable: number;
}

export class Disk {
  readonly #root: string;
  readonly #changes = new Map<string, FolderChange[]>();
  readonly #writes = new Map<string, Written[]>();

  /** `root` is a folder that existed before. */
  constructor(root: string, { calls }: Recording) {
    this.#root = root;
    const syncs = new Syncs(calls);
    const names = new Map<string, string>();
    for (const call of calls) {
      if (call.type === 'write') {
        const writes = this.#writes.get(call.inode) ?? [];
        writes.push({ bytes: call.bytes, begin: call.begin, durable: syncs.after(`file ${call.inode}`, call.end) });
        this.#writes.set(call.inode, writes);
      } else if (call.type !== 'sync' && call.type !== 'sync-folder') this.#change(call, names, syncs);
    }
  }

  /** `names`: inodes of files by path, as the processes saw them. */
  #change(call: Extract<Call, { path: string } | { from: string }>, names: Map<string, string>, syncs: Syncs): void {
    const path = 'path' in call ? call.path : call.to;
    const change = (entries: FolderChange['names']) => {
      const folder = dirname(path);
      const durable = syncs.after(`folder ${folder}`, call.end);
      this.#changes.set(folder, [
        ...(this.#changes.get(folder) ?? []),
        { folder, names: entries, begin: call.begin, durable },
      ]);
    };
    switch (call.type) {
      case 'mkdir':
        return change([[basename(path), { type: 'folder' }]]);
      case 'rmdir':
      case 'unlink':
        names.delete(path);
        return change([[basename(path), undefined]]);
      case 'create':
        if (names.has(path)) throw new Error(`${path} is opened to be changed in its place`);
        names.set(path, call.inode);
        return change([[basename(path), { type: 'file', inode: call.inode }]]);
      case 'link':
      case 'rename': {
        const inode = names.get(call.from);
        if (inode === undefined || dirname(call.from) !== dirname(path))
          throw new Error(`${call.type} ${call.from} ${path}: not a known file of the same folder`);
        names.set(path, inode);
        const entry = [basename(path), { type: 'file', inode }] as const;
        if (call.type === 'link') return change([entry]);
        names.delete(call.from);
        return change([[basename(call.from), undefined], entry]);
      }
    }
  }

  /** Folders with changes before `line` that were not synced. */
  unsynced(line: number): string[] {
    return [...this.#changes]
      .filter(([, changes]) => changes.some(({ begin, durable }) => begin <= line && durable > line))
      .map(([folder]) => folder);
  }

  /** A folder's path below the root. */
  shown(folder: string): string {
    return relative(this.#root, folder) || '.';
  }

  /** The disk after a cut between `line` and the next line. */
  after(line: number, spared: Spared): DiskState {
    const state = { folders: [] as string[], files: [] as FileLeft[] };
    this.#walk(this.#root, line, spared, state);
    return state;
  }

  #walk(folder: string, line: number, spared: Spared, into: { folders: string[]; files: FileLeft[] }): void {
    for (const [name, entry] of this.#entries(folder, line, spared)) {
      const path = join(folder, name);
      if (entry.type === 'file')
        into.files.push({ path, inode: entry.inode, ...this.#left(entry.inode, line, spared) });
      else {
        into.folders.push(path);
        this.#walk(path, line, spared, into);
      }
    }
  }

  #entries(folder: string, line: number, spared: Spared): Map<string, Entry> {
    const entries = new Map<string, Entry>();
    const lost = new Set<string>();
    for (const change of this.#changes.get(folder) ?? []) {
      if (change.begin > line) break;
      const follows = change.names.some(([name]) => lost.has(name));
      const survives = change.durable <= line || (!follows && spared.change(change));
      for (const [name, entry] of change.names) {
        if (!survives) lost.add(name);
        else if (entry === undefined) entries.delete(name);
        else entries.set(name, entry);
      }
    }
    return entries;
  }

  #left(inode: string, line: number, spared: Spared): { readonly written: number; readonly zeros: number } {
    const writes = (this.#writes.get(inode) ?? []).filter(({ begin }) => begin <= line);
    const size = (some: readonly Written[]) => some.reduce((sum, { bytes }) => sum + bytes, 0);
    const [all, synced] = [size(writes), size(writes.filter(({ durable }) => durable <= line))];
    if (all === synced) return { written: all, zeros: 0 };
    switch (spared.bytes(inode)) {
      case 'all':
        return { written: all, zeros: 0 };
      case 'none':
        return { written: synced, zeros: 0 };
      case 'zeros':
        return { written: synced, zeros: all - synced };
      case 'half':
        return { written: synced + ((all - synced) >> 1), zeros: 0 };
    }
  }
}

/** Remembers when a change to a file or a folder was synced. */
class Syncs {
  readonly #syncs = new Map<string, { readonly begin: number; readonly end: number }[]>();

  constructor(calls: readonly Call[]) {
    for (const call of calls) {
      if (call.type !== 'sync' && call.type !== 'sync-folder') continue;
      const what = call.type === 'sync' ? `file ${call.inode}` : `folder ${call.path}`;
      this.#syncs.set(what, [...(this.#syncs.get(what) ?? []), call]);
    }
  }

  /** The earliest end of all syncs that started after `line`; infinite when there was none. */
  after(what: string, line: number): number {
    const ends = (this.#syncs.get(what) ?? []).filter(({ begin }) => begin > line).map(({ end }) => end);
    return Math.min(Number.POSITIVE_INFINITY, ...ends);
  }
}
