/** Seconds of each test file, kept in tests/durations.json: long files begin first, and shards are equally long. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Project → path of a test file from the root → seconds. Files that take less than `leastSeconds` are left out. */
export type Durations = Readonly<Record<string, Readonly<Record<string, number>>>>;

/** A file of a project took so long. */
export interface FileDuration {
  readonly project: string;
  readonly path: string;
  readonly seconds: number;
}

/** What a file that is not listed counts. */
const leastSeconds = 1;

const fileOf = (root: string) => join(root, 'tests/durations.json');

export function readDurations(root: string): Durations {
  return JSON.parse(readFileSync(fileOf(root), 'utf8')) as Durations;
}

export function secondsOf(durations: Durations, project: string, path: string): number {
  return durations[project]?.[path] ?? leastSeconds;
}

/** Puts the durations of a run into the list, and takes out files that are no longer there. */
export function withRun(kept: Durations, run: readonly FileDuration[], isThere: (path: string) => boolean): Durations {
  const all = new Map(run.map((one) => [`${one.project} ${one.path}`, one]));
  for (const [project, files] of Object.entries(kept)) {
    for (const [path, seconds] of Object.entries(files)) {
      const name = `${project} ${path}`;
      if (!all.has(name) && isThere(path)) all.set(name, { project, path, seconds });
    }
  }
  return listed([...all.values()].filter(({ seconds }) => seconds >= leastSeconds));
}

export function writeDurations(root: string, durations: Durations): void {
  writeFileSync(fileOf(root), `${JSON.stringify(durations, null, 2)}\n`);
}

/** Sorts by name, so that a new measurement changes numbers and moves no line. */
function listed(files: readonly FileDuration[]): Durations {
  const durations: Record<string, Record<string, number>> = {};
  for (const { project, path, seconds } of files.toSorted(byName))
    (durations[project] ??= {})[path] = Math.round(seconds);
  return durations;
}

function byName(a: FileDuration, b: FileDuration): number {
  return a.project === b.project ? compare(a.path, b.path) : compare(a.project, b.project);
}

const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);
