/** Starts a worker beside those of a running stack, with another environment, as if it were on another machine. */
import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { type PetrelUser, root } from './petrel.ts';
import { patienceMs } from '../patience.ts';

export interface SeenWorker {
  readonly worker: string;
  readonly pid: number;
  readonly state: string;
  readonly jobs: readonly string[];
  readonly lastError?: { readonly code: string; readonly message: string };
}

export interface SeenRun {
  readonly state: string;
  readonly stage?: string;
  readonly queued?: string;
  readonly reason?: { readonly code: string; readonly message: string };
  readonly workers: readonly SeenWorker[];
}

export interface SecondWorkerOptions {
  readonly name: string;
  /** Replaces variables of the stack's own worker; undefined removes one. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly roles?: string;
  /** The built checkout that it runs; the one under test when absent. */
  readonly checkout?: string;
  /** A program that runs the worker's command line, which is passed as its last arguments. */
  readonly within?: readonly string[];
}

/** Starts the worker with the environment of `local-1`; resolves when the stack sees it. */
export async function startSecondWorker(user: PetrelUser, options: SecondWorkerOptions): Promise<ChildProcess> {
  const { name, env = {}, roles = 'trainer,rollout,reward', checkout = root, within = [] } = options;
  const { pid } = await seenWorker(user, 'local-1', () => true);
  const command = [
    ...within,
    process.execPath,
    `${checkout}/dist/workers/main.js`,
    ...['--name', name, '--roles', roles, '--threads', '1'],
  ];
  const inherited = { ...environmentOf(pid), PETREL_CHILD: name };
  // These variables mark the supervisor's children; the supervisor would stop this process.
  for (const variable of ['PETREL_CHILD_KIND', 'PETREL_READY_FILE']) delete (inherited as NodeJS.ProcessEnv)[variable];
  const child = spawn(command[0] ?? '', command.slice(1), {
    env: { ...inherited, ...env },
    stdio: ['ignore', 'ignore', process.env['PETREL_SHOW'] === undefined ? 'ignore' : 'inherit'],
  });
  await seenWorker(user, name, () => true);
  return child;
}

/** What `petrel status` reports about a worker, once the condition holds. */
export async function seenWorker(
  user: PetrelUser,
  name: string,
  is: (worker: SeenWorker) => boolean,
): Promise<SeenWorker> {
  return until(`worker ${name}`, async () => {
    const { workers } = (await user.petrel('status', '--json')).json<{ readonly workers: readonly SeenWorker[] }>();
    return workers.find((seen) => seen.worker === name && is(seen));
  });
}

/** What `petrel status RUN` reports, once the condition holds. */
export async function seenRun(user: PetrelUser, run: string, is: (seen: SeenRun) => boolean): Promise<SeenRun> {
  return until(`run ${run}`, async () => {
    const seen = (await user.petrel('status', run, '--json')).json<SeenRun>();
    return is(seen) ? seen : undefined;
  });
}

/**
 * Repeats until there is an answer. A question may be a process, so it pauses for twice as long as the last one took,
 * and at least for 100 ms: the machine is there for the runs.
 */
export async function until<T>(what: string, ask: () => Promise<T | undefined>): Promise<T> {
  const end = performance.now() + patienceMs;
  for (;;) {
    const asked = performance.now();
    const answer = await ask();
    if (answer !== undefined) return answer;
    const took = performance.now() - asked;
    if (performance.now() > end) throw new Error(`${what}: nothing of the kind within ${patienceMs} ms`);
    await delay(Math.max(100, 2 * took));
  }
}

/** The environment that a process was started with. */
export function environmentOf(pid: number): NodeJS.ProcessEnv {
  const entries = readFileSync(`/proc/${pid}/environ`, 'utf8')
    .split('\0')
    .filter((entry) => entry.includes('='));
  return Object.fromEntries(
    entries.map((entry) => [entry.slice(0, entry.indexOf('=')), entry.slice(entry.indexOf('=') + 1)]),
  );
}
