/** Places where tests run untrusted programs: as the user of the tests, and as an ordinary user when that is root. */
import { chmodSync, copyFileSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';
import { openProgramPlace, tryPython, type ProgramPlace } from '../code/program.ts';
import { errorToJson } from '../../core/errors.ts';
import { tryWalls } from './open-walls.ts';
import { findPython, pythonCommand, type PythonFiles } from './python.ts';
import type { Walls } from './walls.ts';

/** A user who owns nothing here. */
const nobody = 65_534;
const asNobody = ['setpriv', `--reuid=${nobody}`, `--regid=${nobody}`, '--clear-groups', '--'];

export interface TestPlace {
  readonly name: string;
  readonly place: ProgramPlace;
}

/**
 * Empty, with one clear line, where no sandbox can be built; an error instead where PETREL_NEEDS_SANDBOX is set, as in
 * .ci/run.
 */
export function testPlaces(): readonly TestPlace[] {
  try {
    const place = openProgramPlace();
    if (!place.walls.root) return [{ name: 'an ordinary user', place }];
    return [
      { name: 'root', place },
      { name: 'an ordinary user', place: placeOfNobody(place) },
    ];
  } catch (error) {
    const { message, hint } = errorToJson(error);
    if (process.env['PETREL_NEEDS_SANDBOX']) throw error;
    console.warn(`SKIPPED: tests of untrusted code, because ${message}. To run them: ${hint}`);
    return [];
  }
}

/** The checkout may be in a folder that only root can enter. */
function placeOfNobody({ walls, runner }: ProgramPlace): ProgramPlace {
  const folder = mkdtempSync(join(tmpdir(), 'petrel-nobody-'));
  chmodSync(folder, 0o755);
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  const copies = { guard: join(folder, 'petrel-guard'), runner: join(folder, 'runner.py') };
  copyFileSync(walls.guard, copies.guard);
  copyFileSync(runner, copies.runner);
  for (const path of Object.values(copies)) chmodSync(path, 0o755);
  const own = { ...walls, root: false, namespace: false, prefix: asNobody, guard: copies.guard, cgroups: undefined };
  tryWalls(own);
  return { walls: own, python: pythonOfNobody(own), runner: copies.runner };
}

/** One that every user can read. */
function pythonOfNobody(walls: Walls): PythonFiles {
  const tried: string[] = [];
  for (const candidate of [pythonCommand(), '/usr/bin/python3', '/usr/local/bin/python3']) {
    try {
      const python = findPython(candidate);
      tryPython({ walls, python });
      return python;
    } catch (error) {
      tried.push(errorToJson(error).message);
    }
  }
  throw new Error(`the tests need a Python that every user can run (apt-get install python3): ${tried.join('; ')}`);
}

/** How many processes have this word on their command line. */
export function processesWith(word: string): number {
  return readdirSync('/proc').filter((name) => {
    try {
      return /^\d+$/.test(name) && readFileSync(`/proc/${name}/cmdline`, 'utf8').includes(word);
    } catch {
      return false; // it has ended
    }
  }).length;
}
