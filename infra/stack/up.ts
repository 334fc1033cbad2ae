/** `petrel up`: finds the stack or starts it, and waits until it serves. */
import { spawn } from 'node:child_process';
import { closeSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { errorToJson, RetryableError, TerminalError } from '../../core/errors.ts';
import { builtFile, buildId, readTools } from '../home.ts';
import { poll } from '../poll.ts';
import { childVariable, kindVariable, stackVariable } from './child-spec.ts';
import { lockHolder } from './lock.ts';
import { logFile, logTail, openLog } from './logs.ts';
import { identify, isAlive, signalProcess, waitForExit } from './process.ts';
import type { ProcessIdentity } from './process.ts';
import { isStackReady, readStack } from './read.ts';
import { readyFileVariable } from './ready.ts';
import { defaultPools, lockFolder, makeStackFolder, readConfig, writeConfig } from './state.ts';
import type { ChildState, StackConfig, StackInfo, WorkerPool } from './state.ts';

export interface EnsureStackOptions {
  readonly home: string;
  /** What the local fleet should be. Without it the fleet stays as it was, at first one worker with all roles. */
  readonly workers?: readonly WorkerPool[];
  /** Scripts in place of the built control and worker processes; for tests. */
  readonly programs?: StackConfig['programs'];
  /** One short line whenever something changes. */
  readonly onProgress?: (line: string) => void;
  /** Bound of the whole wait. */
  readonly timeoutMs?: number;
}

const readyTimeoutMs = 90_000;
const pollMs = 25;
/** Deaths in a row, never having been ready, after which waiting longer is pointless. */
const hopelessFailures = 3;

/**
 * Resolves with the stack once every process of it serves. Starts what is missing; two callers at once get one stack.
 * A stack that runs code of an older build is handed over to a supervisor of this one, which replaces only petrel's own
 * processes. Throws `InvalidInput` (not set up, not built, bad pools), `StackFailed` with the last log lines, `StackTimeout`.
 */
export async function ensureStack(options: EnsureStackOptions): Promise<StackInfo> {
  const { home } = options;
  readTools(home);
  makeStackFolder(home);
  writeWanted(options);
  const until = performance.now() + (options.timeoutMs ?? readyTimeoutMs);
  for (;;) {
    await retireOldSupervisor(home);
    const spawned = readStack(home) ? undefined : startSupervisor(home);
    const stack = await untilReady({ ...options, timeoutMs: until - performance.now() }, spawned);
    if (stack !== 'of another build') return stack;
  }
}

/** Changes the local fleet of a running stack; resolves when the new workers serve and the unwanted ones are gone. */
export async function setPools(home: string, workers: readonly WorkerPool[]): Promise<StackInfo> {
  return await ensureStack({ home, workers });
}

/** Brings the supervisor back whenever it is gone, until the signal comes. For petrel's own processes of the stack: whoever of them is left heals it. */
export async function keepStack(
  home: string,
  signal: AbortSignal,
  log: (line: string) => void,
  everyMs = 1_000,
): Promise<void> {
  while (!signal.aborted) {
    try {
      if (!lockHolder(lockFolder(home))) {
        log('the supervisor is gone; starting it again');
        startSupervisor(home);
      }
    } catch (error) {
      log(`the supervisor could not be started: ${errorToJson(error).message}`); // a full disk: tried again
    }
    await delay(everyMs, undefined, { signal }).catch(() => {}); // aborted: the loop ends
  }
}

function writeWanted({ home, workers, programs }: EnsureStackOptions): void {
  const before = readConfig(home);
  const pools = workers ?? before?.pools ?? defaultPools;
  const chosen = programs ?? before?.programs;
  const config: StackConfig = { pools, ...(chosen === undefined ? {} : { programs: chosen }) };
  if (chosen === undefined) ['workers/control/main.js', 'workers/main.js'].forEach(builtFile);
  if (JSON.stringify(before) !== JSON.stringify(config)) writeConfig(home, config);
}

/** Waits for a stack that is going down; ends a supervisor of another build, whose children stay for the next one. */
async function retireOldSupervisor(home: string): Promise<void> {
  const holder = lockHolder(lockFolder(home));
  if (!holder) return;
  const stack = readStack(home);
  if (stack?.build === buildId()) return;
  if (stack) signalProcess(holder, 'SIGKILL');
  // Neither up nor leaving: it has just been started, by another shell.
  else if (
    await poll(() => !isAlive(holder) || readStack(home) !== undefined, { everyMs: pollMs, timeoutMs: readyTimeoutMs })
  )
    return;
  await waitForExit(holder, readyTimeoutMs);
}

function startSupervisor(home: string): ProcessIdentity | undefined {
  const log = openLog(home, 'supervisor');
  try {
    const env: NodeJS.ProcessEnv = { ...process.env, PETREL_HOME: home };
    for (const name of [stackVariable, childVariable, kindVariable, readyFileVariable]) delete env[name]; // it is nobody's child
    const child = spawn(process.execPath, ['--enable-source-maps', builtFile('infra/stack/supervisor-main.js'), home], {
      env,
      detached: true,
      stdio: ['ignore', log, log],
    });
    child.unref();
    return child.pid === undefined ? undefined : identify(child.pid);
  } finally {
    closeSync(log);
  }
}

async function untilReady(
  { home, onProgress, timeoutMs = readyTimeoutMs }: EnsureStackOptions,
  spawned: ProcessIdentity | undefined,
): Promise<StackInfo | 'of another build'> {
  const wanted = JSON.stringify(readConfig(home)?.pools);
  const told = new Map<string, string>();
  const look = (): StackInfo | 'of another build' | undefined => {
    const stack = readStack(home);
    if (!stack) return failIfNobodyServes(home, spawned);
    // The processes of an older build start a supervisor of their own when theirs is gone, and may be the first to do so.
    if (stack.build !== buildId()) return 'of another build';
    const serves = JSON.stringify(stack.pools) === wanted && isStackReady(stack);
    if (serves && told.size === 0) return stack; // it was up all along: there is nothing to tell
    tellChanges(stack, told, onProgress);
    const hopeless = stack.children.find(({ failures }) => failures >= hopelessFailures);
    if (hopeless) throw failure(home, hopeless);
    return serves ? stack : undefined;
  };
  const stack = await poll(look, { everyMs: pollMs, timeoutMs });
  if (stack) return stack;
  const late = readStack(home)
    ?.children.filter(({ state }) => state !== 'ready')
    .map(({ name, state }) => `${name} is ${state}`);
  throw new RetryableError(
    'StackTimeout',
    `the local stack was not ready after ${timeoutMs / 1000} s: ${late?.join(', ') ?? 'no supervisor'}`,
    {
      where: logFile(home, 'supervisor'),
      hint: 'petrel doctor',
    },
  );
}

function failIfNobodyServes(home: string, spawned: ProcessIdentity | undefined): undefined {
  if ((spawned && isAlive(spawned)) || lockHolder(lockFolder(home)) || readStack(home)) return undefined;
  throw new TerminalError(
    'StackFailed',
    `the stack's supervisor ended at its start. Its log ends with:\n${logTail(home, 'supervisor')}`,
    {
      where: logFile(home, 'supervisor'),
    },
  );
}

function failure(home: string, { name, lastExit, failures }: ChildState): TerminalError {
  const message = `${name} of the local stack died ${failures} times at its start (${lastExit}). Its log ends with:\n${logTail(home, name)}`;
  return new TerminalError('StackFailed', message, {
    where: logFile(home, name),
    hint: '`petrel down` stops what did start',
  });
}

function tellChanges(
  { children }: StackInfo,
  told: Map<string, string>,
  onProgress: ((line: string) => void) | undefined,
): void {
  for (const { name, state } of children) {
    if (state === 'stopped' || told.get(name) === state) continue; // its turn has not come
    told.set(name, state);
    onProgress?.(`${name}: ${state}`);
  }
}
