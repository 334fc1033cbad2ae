/** Records the file-system calls of petrel's processes, and lays out the state after a power cut. */
import { execFileSync } from 'node:child_process';
import {
  appendFileSync,
  copyFileSync,
  linkSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseRecording } from './calls.ts';
import type { Recording } from './calls.ts';
import type { DiskState } from './disk.ts';

const source = join(dirname(fileURLToPath(import.meta.url)), 'record.c');

export class Recorder {
  readonly #below: string;
  readonly #library: string;
  readonly #calls: string;
  readonly #files: string;

  /** `below`: the watched folder. `folder`: where the recording goes; it must be on the same file system. */
  constructor(below: string, folder: string) {
    mkdirSync(folder, { recursive: true });
    this.#below = below;
    this.#library = join(folder, 'record.so');
    this.#calls = join(folder, 'calls');
    this.#files = join(folder, 'files');
    mkdirSync(this.#files);
    writeFileSync(this.#calls, '');
    execFileSync('c++', ['-x', 'c', '-shared', '-fPIC', '-O2', '-o', this.#library, source, '-ldl']);
  }

  /** Environment variables for the recorded processes and their children. */
  get env(): Readonly<Record<string, string>> {
    return {
      LD_PRELOAD: this.#library,
      RECORD_BELOW: this.#below,
      RECORD_CALLS: this.#calls,
      RECORD_FILES: this.#files,
    };
  }

  /** Marks in the recording what the user has been told. */
  mark(told: object): void {
    appendFileSync(this.#calls, `M\t${JSON.stringify(told)}\n`);
  }

  read(): Recording {
    return parseRecording(readFileSync(this.#calls, 'utf8'));
  }

  /**
   * Makes `target` equal to the state of the watched folder. Whole files share their bytes with the recording, so they
   * must not be written to.
   */
  layOut({ folders, files }: DiskState, target: string): void {
    rmSync(target, { recursive: true, force: true });
    const place = (path: string) => join(target, relative(this.#below, path));
    for (const folder of folders) mkdirSync(place(folder), { recursive: true });
    for (const { path, inode, written, zeros } of files) {
      const from = join(this.#files, inode);
      if (zeros === 0 && statSync(from).size === written) linkSync(from, place(path));
      else {
        copyFileSync(from, place(path));
        truncateSync(place(path), written);
        truncateSync(place(path), written + zeros);
      }
    }
  }
}
