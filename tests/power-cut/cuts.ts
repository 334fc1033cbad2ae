/** The states that the disk of a recording may have after a power cut: several for each line, each state once. */
import { createHash } from 'node:crypto';
import { basename } from 'node:path';
import type { Recording } from './calls.ts';
import type { Disk, DiskState, Spared } from './disk.ts';

export interface Cut {
  /** The cut came after this line of the recording. */
  readonly line: number;
  /** Which changes survived although they were not synced. */
  readonly spared: string;
  readonly state: DiskState;
}

/**
 * There are too many states to test all. For every line these are tested: all unsynced changes survive; none do; only
 * names do (files are empty, or zeros); all folders but one do; only one folder does; and `random` combinations chosen
 * by `seed`. Of equal states the latest cut is kept, because the user had been told the most by then.
 */
export function cutsOf(disk: Disk, recording: Recording, seed: number, random = 2): Cut[] {
  const cuts = new Map<string, Cut>();
  for (let line = 0; line < recording.lines; line++) {
    for (const spared of choices(disk, line, seed, random)) {
      const state = disk.after(line, spared);
      cuts.set(signature(state), { line, spared: spared.name, state });
    }
  }
  return [...cuts.values()].sort((a, b) => a.line - b.line);
}

function* choices(disk: Disk, line: number, seed: number, random: number): Generator<Spared> {
  const folders = disk.unsynced(line);
  yield { name: 'everything', change: () => true, bytes: () => 'all' };
  yield { name: 'what was synced', change: () => false, bytes: () => 'none' };
  yield { name: 'names without bytes', change: () => true, bytes: () => 'none' };
  yield { name: 'names with zeros', change: () => true, bytes: () => 'zeros' };
  for (const one of folders) {
    yield {
      name: `everything but what changed in ${disk.shown(one)}`,
      change: ({ folder }) => folder !== one,
      bytes: () => 'all',
    };
    yield { name: `names in ${disk.shown(one)} only`, change: ({ folder }) => folder === one, bytes: () => 'none' };
  }
  for (let n = 0; n < random; n++) {
    const next = randomBits(`${seed} ${line} ${n}`);
    yield {
      name: `by chance (seed ${seed}, ${n})`,
      change: () => next() % 2 === 0,
      bytes: () => (['all', 'none', 'zeros', 'half'] as const)[next() % 4] ?? 'all',
    };
  }
}

/** No process reads temporary files. */
function signature({ folders, files }: DiskState): string {
  const hash = createHash('sha256').update(folders.join('\n'));
  for (const { path, inode, written, zeros } of files)
    if (!basename(path).startsWith('.tmp-')) hash.update(`\n${path} ${inode} ${written} ${zeros}`);
  return hash.digest('hex');
}

/** The bytes of SHA-256 over a counter. */
function randomBits(seed: string): () => number {
  let [bytes, at, counter] = [Buffer.alloc(0), 0, 0];
  return () => {
    if (at === bytes.length) {
      bytes = createHash('sha256').update(`${seed} ${counter++}`).digest();
      at = 0;
    }
    return bytes[at++] ?? 0;
  };
}
