import { spawnSync } from 'node:child_process';
import { guardInside, sandboxCommand } from './command.ts';
import type { Bind } from './mounts.ts';
import { whyRefused } from './refusal.ts';
import { findWalls, type Walls, waysOf } from './walls.ts';

const trialMs = 20_000;
/** Walls by the PATH on which bubblewrap is found. */
const opened = new Map<string | undefined, Walls>();

/**
 * The walls, after a sandbox has been built with them once. Where none can be built, nothing that needs a sandbox is
 * run at all. Throws UnfitError `NoSandbox` with what to type.
 */
export function openWalls(): Walls {
  const path = process.env['PATH'];
  const known = opened.get(path);
  if (known !== undefined) return known;
  const walls = workingWay(findWalls());
  opened.set(path, walls);
  return walls;
}

/**
 * The first way that builds a sandbox of the real form. Throws UnfitError `NoSandbox` about the first one when none
 * does.
 */
export function workingWay(walls: Walls): Walls {
  const ways = waysOf(walls);
  const works = ways.find((way) => trial(way, [guardInside], []).end !== undefined);
  if (works === undefined) tryWalls(walls);
  return works ?? walls;
}

/** The program of the trial is the guard again, which says how it is used and ends. Throws UnfitError `NoSandbox`. */
export function tryWalls(walls: Walls): void {
  const { end, said } = trial(walls, [guardInside], []);
  if (end === undefined) throw whyRefused(walls.root, said);
}

/** Runs a program that does nothing in a sandbox. `end`: its exit status; undefined when no sandbox could be built. */
export function trial(
  walls: Walls,
  program: readonly string[],
  binds: readonly Bind[],
): { readonly end: number | undefined; readonly said: string } {
  const { command, args } = sandboxCommand(walls, {
    command: program,
    binds,
    diskMb: 1,
    orders: { report: 2, wall_ms: trialMs, tasks: 64 },
  });
  const { stderr, error } = spawnSync(command, args, { env: {}, encoding: 'utf8', timeout: 2 * trialMs });
  const end = /^end=exit value=(\d+)/m.exec(stderr ?? '')?.[1];
  return { end: end === undefined ? undefined : Number(end), said: (stderr ?? '').trim() || String(error) };
}
