/**
 * The turn of the workers that load weights into one server, on any machine that sees the folder. A file names who has
 * the turn. On the same machine its process shows whether it lives; on another one the file does, which it touches.
 */
import { randomUUID } from 'node:crypto';
import { mkdir, open, readFile, rm, stat, utimes } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { RetryableError } from '../../../../core/errors.ts';
import { ticking } from '../../../../infra/sampling-servers/ticking.ts';
import { asUnwritable } from './unwritable.ts';

/** Milliseconds. */
export interface TurnTiming {
  readonly poll: number;
  /** Whoever has the turn on another machine and has not touched the file for so long is dead. */
  readonly silent: number;
  /** Longest wait for the turn: a load of all weights from a disk takes less. */
  readonly longest: number;
}

const usual: TurnTiming = { poll: 200, silent: 30_000, longest: 1_800_000 };
const touchMs = 2_000;

const fileOf = (folder: string): string => join(folder, 'lock');

/**
 * Makes the folder, and works there while no other worker does; `tick`: called while it waits. Throws PauseError
 * `WrongServer` for a folder that cannot be written, and RetryableError `ServerFailed` when the turn never comes.
 */
export async function inTurn<T>(
  folder: string,
  work: () => Promise<T>,
  tick?: () => void,
  { poll, silent, longest }: TurnTiming = usual,
): Promise<T> {
  const path = fileOf(folder);
  const other = new Watch(path);
  const began = performance.now();
  const begun = ticking(tick);
  let own = await take(folder);
  try {
    for (; own === undefined; own = await take(folder)) {
      if (await other.isDead(silent)) await rm(path, { force: true });
      else if (performance.now() - began > longest) throw tooLate(path, longest);
      else await sleep(poll);
    }
  } finally {
    begun();
  }
  return holding(path, own, work);
}

/** Works in the folder if no other worker does now. */
export async function inFreeTurn(folder: string, work: () => Promise<void>): Promise<void> {
  const own = await take(folder);
  if (own !== undefined) await holding(fileOf(folder), own, work);
}

/** The text of the file when it is this worker's now; undefined: it is another one's. */
async function take(folder: string): Promise<string | undefined> {
  const own = `${hostname()} ${process.pid} ${randomUUID()}`;
  try {
    await mkdir(folder, { recursive: true });
    const file = await open(fileOf(folder), 'wx');
    await file.writeFile(own).finally(() => file.close());
    return own;
  } catch (error) {
    // Gone: whoever had the turn has just removed the folder.
    if (isOf(error, 'EEXIST') || isOf(error, 'ENOENT')) return undefined;
    throw asUnwritable(folder, error);
  }
}

async function holding<T>(path: string, own: string, work: () => Promise<T>): Promise<T> {
  // Who has lost the turn to another worker learns it from the label of the server's weights.
  const touch = () => void utimes(path, new Date(), new Date()).catch(() => {});
  const timer = setInterval(touch, touchMs);
  try {
    return await work();
  } finally {
    clearInterval(timer);
    if ((await textOf(path)) === own) await rm(path, { force: true });
  }
}

/** Watches the worker that has the turn. Its clock may be another one: what counts is that the file changes. */
class Watch {
  readonly #path: string;
  #seen = '';
  #since = 0;

  constructor(path: string) {
    this.#path = path;
  }

  async isDead(silentMs: number): Promise<boolean> {
    const owner = await textOf(this.#path);
    const touched = await stat(this.#path).then(({ mtimeMs }) => mtimeMs, unlessGone);
    if (owner === undefined || touched === undefined) return false;
    const seen = `${owner} ${touched}`;
    if (seen !== this.#seen) this.#since = performance.now();
    this.#seen = seen;
    const [host, pid] = owner.split(' ');
    if (host === hostname() && Number(pid) > 0) return !lives(Number(pid));
    return performance.now() - this.#since >= silentMs;
  }
}

function lives(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return isOf(error, 'EPERM');
  }
}

const textOf = (path: string): Promise<string | undefined> => readFile(path, 'utf8').catch(unlessGone);

const isOf = (error: unknown, code: string): boolean => (error as NodeJS.ErrnoException).code === code;

function unlessGone(error: unknown): undefined {
  if (!isOf(error, 'ENOENT')) throw error;
}

const tooLate = (path: string, longestMs: number): RetryableError =>
  new RetryableError('ServerFailed', `another worker has loaded weights for more than ${longestMs / 60_000} minutes`, {
    where: path,
    hint: `see the server’s log; where no worker loads, rm ${path}`,
  });
