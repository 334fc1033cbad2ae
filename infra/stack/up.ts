/** `petrel up`: finds or starts the stack, and waits until it serves. */
import { spawn } from 'node:child_process';
import { closeSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { errorToJson, InvalidInputError, RetryableError, TerminalError } from '../../core/errors.ts';
import { processEnvironment } from '../environment.ts';
import { builtProgram, buildId, readTools } from '../home.ts';
import { requireLimits } from '../limits.ts';
import { poll } from '../poll.ts';
import { childVariable, kindVariable, stackVariable } from './child-spec.ts';
import { ownAddresses, whyNotHere } from './here.ts';
import type { ListenAddress } from './listen.ts';
import { lockHolder } from './lock.ts';
import { logFile, logTail, openLog } from './logs.ts';
import { identify, isAlive, signalProcess, waitForExit } from './process.ts';
import type { ProcessIdentity } from './process.ts';
import { isStackReady, readStack } from './read.ts';
import { readyFileVariable } from './ready.ts';
import { requireServing } from './serving.ts';
import { readServers } from './servers.ts';
import { defaultPools, lockFolder, makeStackFolder, onlyIfUp, readConfig, writeConfig } from './state.ts';
import type { ChildState, StackConfig, StackInfo, WorkerPool } from './state.ts';

export interface EnsureStackOptions {
  readonly home: string;
  /** The desired local fleet. Without it the fleet stays as it was; at first it is one worker with all roles. */
  readonly workers?: readonly WorkerPool[];
  /**
   * The address at which the NATS server listens for machines that join; `off`: on this machine only. Without it
   * nothing changes.
   */
  readonly listen?: ListenAddress | 'off';
  /** Scripts instead of the built control and worker processes; for tests. */
  readonly programs?: StackConfig['programs'];
  /** Receives one short line per change. */
  readonly onProgress?: (line: string) => void;
  /** Timeout of the whole wait. */
  readonly timeoutMs?: number;
}

const readyTimeoutMs = 90_000;
const pollMs = 25;
/** After this many deaths in a row before it was ever ready, a process counts as broken and the wait ends. */
const hopelessFailures = 3;

/**
 * Resolves with the stack once every process of it is ready. Starts missing processes; two simultaneous callers get one
 * stack. If the stack runs an older build, a supervisor of this build takes over and replaces only petrel's own
 * processes. Throws `InvalidInput` (not set up, not built, bad pools), `StackFailed` with the last log lines,
 * `StackTimeout`.
 */
export async function ensureStack(options: EnsureStackOptions): Promise<StackInfo> {
  const { home } = options;
  requireSetUp(home);
  // A stack that runs has what it needs, and its own threads count as this user's.
  if (readStack(home) === undefined) await requireLimits();
  await requireHere(options.listen);
  makeStackFolder(home);
  await chooseServers(home);
  writeWanted(options);
  const until = performance.now() + (options.timeoutMs ?? readyTimeoutMs);
  for (;;) {
    await retireOldSupervisor(home);
    const spawned = readStack(home) ? undefined : startSupervisor(home);
    const stack = await untilReady({ ...options, timeoutMs: until - performance.now() }, spawned);
    if (stack !== 'of another build') return stack;
  }
}

/**
 * Replaces a running stack of another build; does nothing when none is up. Called before a run is noted as driven: the
 * control process of the other build would begin the run with its own code as soon as it reads the note.
 */
export async function replaceOtherBuild({ home, onProgress }: EnsureStackOptions): Promise<void> {
  const stack = readStack(home);
  if (stack !== undefined && stack.build !== buildId()) await ensureStack({ home, ...(onProgress && { onProgress }) });
}

/**
 * Changes the local fleet of a running stack. Resolves when the new workers are ready and the unwanted ones are gone.
 */
export async function setPools(home: string, workers: readonly WorkerPool[]): Promise<StackInfo> {
  return await ensureStack({ home, workers });
}

/**
 * Restarts the supervisor whenever it is gone, until the signal is aborted. Every process of petrel's own in the stack
 * calls this, so the last one left can repair the stack. A stack that was stopped meanwhile stays down.
 */
export async function keepStack(
  home: string,
  signal: AbortSignal,
  log: (line: string) => void,
  everyMs = 1_000,
): Promise<void> {
  let started: ProcessIdentity | undefined;
  while (!signal.aborted) {
    try {
      if (!lockHolder(lockFolder(home)) && !(started && isAlive(started))) {
        started = startSupervisor(home, [onlyIfUp]);
        log(`the supervisor is gone; process ${started?.pid ?? 'unknown'} takes its place`);
      }
    } catch (error) {
      log(`the supervisor could not be started: ${errorToJson(error).message}`); // a full disk: tried again
    }
    await delay(everyMs, undefined, { signal }).catch(() => {}); // aborted: the loop ends
  }
}

/** Throws InvalidInputError when set-up has not brought the stack's servers and programs. */
export function requireSetUp(home: string): void {
  readTools(home);
  ['supervisor', 'control', 'worker'].forEach(builtProgram);
}

/**
 * The servers of a stack are chosen when it starts, and its name with them. Throws InvalidInputError when stack.yaml
 * has changed since, and RetryableError when a server that it names does not serve.
 */
export async function chooseServers(home: string): Promise<void> {
  const [wanted, before] = [readServers(home), readConfig(home)];
  const isOther = !isDeepStrictEqual(wanted, before?.servers);
  const running = readStack(home);
  if (running !== undefined && isOther)
    throw new InvalidInputError('the servers of stack.yaml are others than those of the running stack', {
      hint: 'petrel down, then petrel up',
    });
  if (running !== undefined) return;
  if (wanted !== undefined) await requireServing(wanted);
  if (isOther) {
    const { servers: _, ...rest } = before ?? { pools: defaultPools };
    writeConfig(home, { ...rest, ...(wanted && { servers: wanted }) });
  }
}

/** Throws InvalidInputError for an address that this machine does not have. One that it had once may come back. */
async function requireHere(listen: EnsureStackOptions['listen']): Promise<void> {
  const why = listen === undefined || listen === 'off' ? undefined : await whyNotHere(listen.host);
  if (why === undefined) return;
  const [own] = ownAddresses();
  throw new InvalidInputError(`--listen: ${why}; it has ${ownAddresses().join(', ') || 'none but loopback'}`, {
    hint: `petrel up --listen ${own ?? 'off'}`,
  });
}

function writeWanted({ home, workers, programs, listen }: EnsureStackOptions): void {
  const before = readConfig(home);
  const pools = workers ?? before?.pools ?? defaultPools;
  const chosen = programs ?? before?.programs;
  const address = listen === 'off' ? undefined : (listen ?? before?.listen);
  if (address !== undefined && before?.servers?.nats !== undefined)
    throw new InvalidInputError(
      'machines can join only a stack with its own NATS server, and stack.yaml names another one',
      {
        hint: 'petrel up --listen off',
      },
    );
  const config: StackConfig = {
    pools,
    ...(before?.servers && { servers: before.servers }),
    ...(address === undefined ? {} : { listen: address }),
    ...(chosen === undefined ? {} : { programs: chosen }),
  };
  if (JSON.stringify(before) !== JSON.stringify(config)) writeConfig(home, config);
}

/**
 * Waits for a stack that is going down. Ends a supervisor of another build; its children stay for the next supervisor.
 */
async function retireOldSupervisor(home: string): Promise<void> {
  const holder = lockHolder(lockFolder(home));
  if (!holder) return;
  const stack = readStack(home);
  if (stack?.build === buildId()) return;
  if (stack) signalProcess(holder, 'SIGKILL');
  // Neither up nor going down: another shell has just started it.
  else if (
    await poll(() => !isAlive(holder) || readStack(home) !== undefined, { everyMs: pollMs, timeoutMs: readyTimeoutMs })
  )
    return;
  await waitForExit(holder, readyTimeoutMs);
}

function startSupervisor(home: string, options: readonly string[] = []): ProcessIdentity | undefined {
  const log = openLog(home, 'supervisor');
  try {
    const env: NodeJS.ProcessEnv = { ...processEnvironment(), PETREL_HOME: home };
    // a supervisor is not a child of another one
    for (const name of [stackVariable, childVariable, kindVariable, readyFileVariable]) delete env[name];
    const child = spawn(process.execPath, [builtProgram('supervisor'), home, ...options], {
      env,
      // Not the folder of the command: the user may remove it while the stack runs, and then no process could be
      // started.
      cwd: home,
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
  const config = readConfig(home);
  const wanted = JSON.stringify([config?.pools, config?.listen]);
  const told = new Map<string, string>();
  const look = (): StackInfo | 'of another build' | undefined => {
    const stack = readStack(home);
    if (!stack) return failIfNobodyServes(home, spawned);
    // Processes of an older build restart a supervisor of their own build when theirs is gone, and may be faster.
    if (stack.build !== buildId()) return 'of another build';
    const isCurrent = JSON.stringify([stack.pools, stack.listen]) === wanted;
    const serves = isCurrent && isStackReady(stack);
    if (serves && told.size === 0) return stack; // it was up before, so there is nothing to report
    tellChanges(stack, told, onProgress);
    const hopeless = stack.children.find(({ failures }) => failures >= hopelessFailures);
    // One that fails with older settings may start with those that this command has just written.
    if (hopeless && isCurrent) throw failure(home, hopeless);
    if (serves && stack.away !== undefined) onProgress?.(`machines cannot join: ${stack.away}`);
    return serves ? stack : undefined;
  };
  const stack = await poll(look, { everyMs: pollMs, timeoutMs });
  if (stack) return stack;
  const late = readStack(home)
    ?.children.filter(({ state }) => state !== 'ready')
    .map(({ name, state, notYet }) => `${name} is ${state}: ${notYet ?? lastLine(home, name)}`);
  throw new RetryableError(
    'StackTimeout',
    `the local stack was not ready after ${timeoutMs / 1000} s: ${late?.join('; ') ?? 'no supervisor'}`,
    {
      where: logFile(home, 'supervisor'),
      hint: 'petrel doctor',
    },
  );
}

/** Processes of petrel's own say in their log why they are not ready. */
const lastLine = (home: string, name: string): string =>
  logTail(home, name).trim().split('\n').at(-1) || `${logFile(home, name)} is empty`;

function failIfNobodyServes(home: string, spawned: ProcessIdentity | undefined): undefined {
  if ((spawned && isAlive(spawned)) || lockHolder(lockFolder(home)) || readStack(home)) return undefined;
  throw new TerminalError(
    'StackFailed',
    `the stack's supervisor ended while it started. Its log ends with:\n${logTail(home, 'supervisor')}`,
    {
      where: logFile(home, 'supervisor'),
    },
  );
}

function failure(home: string, { name, lastExit, failures }: ChildState): TerminalError {
  const message = `${name} of the local stack died ${failures} times while it started (${lastExit}). Its log ends with:\n${logTail(home, name)}`;
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
    if (state === 'stopped' || told.get(name) === state) continue; // not started yet
    told.set(name, state);
    onProgress?.(`${name}: ${state}`);
  }
}
