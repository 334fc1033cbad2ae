/**
 * Homes whose stacks run on from one test file to the next: to start and to end a stack takes more processor time than
 * most files need for their runs. The runner makes the folder of these homes, and ends their stacks after the last file
 * (tests/runner/lender.ts). Tests that Vitest runs by itself are lent nothing.
 *
 * This file imports nothing of petrel, as the tests of tests/black-box that use it.
 */
import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Names the folder of the homes. Without it nothing is lent. */
export const lentHomesVariable = 'PETREL_LENT_HOMES';

/** Who borrows a home. Loops choose the pools of a stack, and users of the command line leave them as they are. */
export type Borrower = 'loop' | 'user';

/** A home that no other test file has at this time. */
export interface LentHome {
  readonly home: string;
  /** Lends the home to the next file. A home that is not given back is ended with all others. */
  giveBack(): void;
}

/** A home whose stack runs, or a new one when none is free. Undefined where nothing is lent. */
export function borrowHome(borrower: Borrower, toolchain: string): LentHome | undefined {
  const folder = process.env[lentHomesVariable];
  if (folder === undefined) return undefined;
  const home = lentHomes(folder, borrower).find((one) => take(one) && isWhole(one)) ?? newHome(folder, borrower);
  if (!existsSync(join(home, 'toolchain'))) symlinkSync(toolchain, join(home, 'toolchain'));
  return { home, giveBack: () => writeFileSync(freeMark(home), '') };
}

/** All homes of a folder, those of one borrower or of both. */
export function lentHomes(folder: string, borrower: Borrower | '' = ''): string[] {
  return readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && entry.name.startsWith(borrower))
    .map(({ name }) => join(folder, name));
}

/** True for a test file that asks for a lent stack. */
export const borrows = (source: string): boolean => source.includes('.onLentStack(');

function newHome(folder: string, borrower: Borrower): string {
  const home = join(folder, `${borrower}-${randomBytes(4).toString('hex')}`);
  mkdirSync(home, { mode: 0o700 });
  return home;
}

/** A file beside a home that is there while nobody has the home. */
const freeMark = (home: string): string => `${home}.free`;

/** Removes the mark of a home. One of several files that ask for the same home can do this. */
function take(home: string): boolean {
  try {
    rmSync(freeMark(home));
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false;
    throw error;
  }
}

/** Fields of stack.json, the published state of a stack. */
interface Published {
  readonly pid: number;
  readonly phase: string;
  readonly children: readonly { readonly pid?: number; readonly state: string; readonly restarts: number }[];
}

/** True when every process of the stack lives, and none of them ever had to be started again. */
function isWhole(home: string): boolean {
  const file = join(home, 'stack/stack.json');
  if (!existsSync(file)) return false;
  const { pid, phase, children } = JSON.parse(readFileSync(file, 'utf8')) as Published;
  const lives = (one: number | undefined) => one !== undefined && existsSync(`/proc/${one}`);
  const isSound = children.every((child) => child.state === 'ready' && child.restarts === 0 && lives(child.pid));
  return phase === 'running' && lives(pid) && isSound;
}
