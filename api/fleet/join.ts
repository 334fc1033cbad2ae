/** `petrel worker --join`: brings this machine into a pool, and keeps its worker running until it is told to leave. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { TerminalError } from '../../core/errors.ts';
import type { JoinFile } from '../../core/wire/join.ts';
import { processEnvironment } from '../../infra/environment.ts';
import { gpuOfMachine } from '../../infra/engines/gpus.ts';
import { fetchBuild } from '../../infra/fleet/builds.ts';
import { ownInstanceId } from '../../infra/fleet/ec2-metadata.ts';
import { parseJoinFile } from '../../infra/fleet/join-file.ts';
import { requireWritable } from '../../infra/fleet/preflight.ts';
import { machineKey, rejoinCode, sessionVariable, writeSession } from '../../infra/fleet/session.ts';
import { askToJoin, connectToJoin, tellLeaving } from '../../infra/nats/access/joining.ts';
import { publicNkey } from '../../infra/nats/nkey.ts';
import { openExistingStore } from '../../infra/store/open.ts';
import type { ApiContext } from '../context.ts';
import { installEngine } from '../engines/install.ts';

export interface JoinOptions {
  /** What `petrel fleet token` printed, and what it is called in errors. */
  readonly text: string;
  readonly where: string;
  /** Compute threads of the worker; default: all processors. */
  readonly threads?: number | undefined;
  /** How long whoever tells this machine to leave waits before it kills, in seconds. Default: 19. */
  readonly graceSeconds?: number | undefined;
  /** Aborting tells the worker to finish or give back its jobs and to leave. */
  readonly signal: AbortSignal;
}

/** After this many ends of the worker's process in a row, without a word from the user, the machine leaves. */
const mostDeaths = 3;
/** A process that lived for so long was well. */
const settledMs = 60_000;

/**
 * Resolves when the worker has left. Throws the reason why the machine cannot work, which the stack's `petrel status`
 * then shows too: a bad or expired token, a store that it cannot read or write, a build that is not what its digest
 * says.
 */
export async function joinFleet({ home, env, notice }: ApiContext, options: JoinOptions): Promise<void> {
  const file = parseJoinFile(options.text, options.where);
  let deaths = 0;
  while (!options.signal.aborted) {
    const began = performance.now();
    const { program, addon, sessionPath, session } = await prepare(home, file, notice, options.signal);
    if (options.signal.aborted) return;
    notice(`joined ${file.stack} as ${session.instance}, pool ${file.pool}, build ${session.build.slice(0, 12)}`);
    const threads = options.threads === undefined ? [] : ['--threads', String(options.threads)];
    const watched = file.nonce === undefined ? [] : ['--notice', 'ec2'];
    const grace = options.graceSeconds === undefined ? [] : ['--grace', String(options.graceSeconds)];
    const words = [
      '--name',
      'w1',
      '--pool',
      file.pool,
      '--roles',
      file.roles.join(','),
      ...threads,
      ...grace,
      ...watched,
    ];
    const ofSession = { PETREL_HOME: home, PETREL_NATIVE: addon, [sessionVariable]: sessionPath };
    const ended = await runProgram([program, ...words], { ...processEnvironment(env), ...ofSession }, options.signal);
    if (ended === 0 || options.signal.aborted) return;
    if (ended === rejoinCode) continue;
    deaths = performance.now() - began > settledMs ? 1 : deaths + 1;
    notice(`the worker ended with ${ended}`);
    if (deaths >= mostDeaths) throw await left(file, died(deaths, ended));
  }
}

const died = (deaths: number, ended: number | string) =>
  new TerminalError('WorkerDied', `the worker's process ended ${deaths} times in a row, the last time with ${ended}`, {
    hint: 'its output stands above; petrel doctor checks this machine',
  });

/** Joins, checks that the store can be used, fetches the build, and installs the engines of the pool. */
async function prepare(home: string, file: JoinFile, notice: ApiContext['notice'], signal: AbortSignal) {
  const key = machineKey(home);
  const nc = await connectToJoin(file);
  try {
    const { id, nonce } = file;
    const bought = nonce === undefined ? undefined : { id: await ownInstanceId(), nonce };
    const welcome = await askToJoin(nc, { ...file, asker: id, key: publicNkey(key), ...(bought && { bought }) });
    const place = await openExistingStore(file.store)
      .then(async (store) => {
        await requireWritable(store);
        const build = await fetchBuild(store, welcome.build, join(home, 'builds'));
        await installEngines(home, build, file, notice, signal);
        return build;
      })
      .catch(async (error: unknown) => {
        await tellLeaving(nc, { ...file, asker: file.id }, error);
        throw error;
      });
    const { nats, pool, roles, store } = file;
    const { instance, jwt, stackInstance, build } = welcome;
    const { lonelySeconds, ownScorers } = file;
    const session = {
      ...{ nats, credential: { key, jwt }, instance, pool, roles: [...roles], store, stackInstance, build },
      ...(lonelySeconds !== undefined && { lonelySeconds }),
      ...(ownScorers && { ownScorers }),
    };
    return {
      program: join(place, 'dist/programs/worker.js'),
      addon: join(place, 'build/native/petrel.node'),
      sessionPath: writeSession(home, session),
      session,
    };
  } finally {
    await nc.close();
  }
}

/** They stay in the home, so a machine that joins again has them. */
async function installEngines(
  home: string,
  root: string,
  { engines = [] }: JoinFile,
  notice: ApiContext['notice'],
  signal: AbortSignal,
): Promise<void> {
  const device = gpuOfMachine() ?? 'cpu';
  for (const engine of engines) {
    if (signal.aborted) return;
    const began = performance.now();
    const { known, environment } = await installEngine({ home, engine, device, root, onLine: notice, signal });
    const seconds = ((performance.now() - began) / 1_000).toFixed(0);
    notice(
      `${engine} for ${device} (${environment.versions.device}) is ${known ? 'here' : `installed after ${seconds} s`}`,
    );
  }
}

/** The error, once the stack knows it. */
async function left(file: JoinFile, error: TerminalError): Promise<TerminalError> {
  const nc = await connectToJoin(file);
  await tellLeaving(nc, { ...file, asker: file.id }, error);
  await nc.close();
  return error;
}

/** Runs the program; resolves with its exit code, or the signal that ended it. */
async function runProgram(
  words: readonly string[],
  env: NodeJS.ProcessEnv,
  signal: AbortSignal,
): Promise<number | string> {
  const child = spawn(process.execPath, words, { env, stdio: 'inherit' });
  const leave = () => void child.kill('SIGTERM');
  signal.addEventListener('abort', leave, { once: true });
  try {
    const [code, by] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null];
    return code ?? by ?? 'an unknown signal';
  } finally {
    signal.removeEventListener('abort', leave);
  }
}
