/** Real servers for tests, each with a temporary PETREL_HOME and free ports. They are stopped by process identity. */
import { spawn } from 'node:child_process';
import { closeSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Role } from '../core/roles.ts';
import { inboxOf } from '../core/wire/worker-identity.ts';
import type { WorkerPlace } from '../core/wire/worker-identity.ts';
import { petrelHome, readTools } from '../infra/home.ts';
import { issueUser } from '../infra/nats/access/authority.ts';
import { isNatsReady } from '../infra/nats/health.ts';
import { newNatsKey, publicNkey } from '../infra/nats/nkey.ts';
import { workerPermissions } from '../infra/nats/access/permissions.ts';
import { natsArgs, writeNatsConfig } from '../infra/nats/server.ts';
import type { HasNats } from '../infra/nats/connection.ts';
import { freePorts, loopback } from '../infra/ports.ts';
import { newNatsSecrets } from '../infra/stack/nats-secrets.ts';
import { identify, isAlive, signalProcess, terminate, waitForExit } from '../infra/stack/process.ts';
import type { ProcessIdentity } from '../infra/stack/process.ts';
import type { HasTemporal } from '../infra/temporal/connection.ts';
import { temporalArgs, temporalRefusal } from '../infra/temporal/server.ts';
import { serverEnvironment } from '../infra/environment.ts';
import { poll } from '../infra/poll.ts';
import { patienceMs } from './patience.ts';

/** A server that has not ended by then is killed. */
const stopMs = 10_000;

export interface TemporaryHome {
  readonly home: string;
  remove(): void;
}

/** A new PETREL_HOME that shares the toolchain of the real one. */
export function temporaryHome(): TemporaryHome {
  const home = mkdtempSync(join(tmpdir(), 'petrel-'));
  symlinkSync(join(petrelHome(), 'toolchain'), join(home, 'toolchain'));
  return { home, remove: () => rmSync(home, { recursive: true, force: true, maxRetries: 3 }) };
}

export interface TestServer {
  readonly process: ProcessIdentity;
  /** Starts the same server on the same ports and files, after `kill` or `stop`. */
  restart(): Promise<void>;
  /** Sends SIGKILL, like a machine that vanishes. Resolves when the process is gone. */
  kill(): Promise<void>;
  stop(): Promise<void>;
}

/**
 * Temporal with its database under `folder`, for `connectTemporalClient` and `connectTemporalWorker`. `settings`:
 * dynamic ones, `name=value`.
 */
export async function startTemporal(
  folder: string,
  settings: readonly string[] = [],
): Promise<TestServer & HasTemporal> {
  const [port] = (await freePorts(1)) as [number];
  const { path } = readTools(petrelHome()).temporal;
  mkdirSync(folder, { recursive: true });
  const args = temporalArgs({ dbFile: join(folder, 'temporal.db'), port, settings });
  const env = serverEnvironment(folder);
  const isReady = async () => (await temporalRefusal(path, port, folder)) === undefined;
  const server = await startServer('temporal', folder, path, args, env, isReady);
  return Object.assign(server, { temporal: { address: `${loopback}:${port}` } });
}

export interface NatsUnderTest extends HasNats {
  /** How a worker of this machine reaches the server, with the credential of a pool with these roles. */
  asWorker(machine: Pick<WorkerPlace, 'instance'>, roles: readonly Role[]): Promise<HasNats>;
}

/** NATS with JetStream under `folder`, for `connectNats`. */
export async function startNats(folder: string): Promise<TestServer & NatsUnderTest> {
  const [port] = (await freePorts(1)) as [number];
  const url = `nats://${loopback}:${port}`;
  mkdirSync(folder, { recursive: true });
  const secrets = await newNatsSecrets('here');
  const options = {
    configFile: join(folder, 'nats.conf'),
    storeDir: join(folder, 'nats'),
    port,
    authority: secrets.authority,
  };
  writeNatsConfig(options);
  const server = await startServer(
    'nats',
    folder,
    readTools(petrelHome())['nats-server'].path,
    natsArgs(options),
    serverEnvironment(folder),
    () => isNatsReady({ url, system: secrets.system }),
  );
  const asWorker: NatsUnderTest['asWorker'] = async ({ instance }, roles) => {
    const key = newNatsKey();
    const claims = { name: instance, key: publicNkey(key), permissions: workerPermissions(instance, roles) };
    const jwt = await issueUser(secrets.authority.workers, claims);
    return { nats: { url, credential: { key, jwt }, inbox: inboxOf({ instance }) } };
  };
  return Object.assign(server, { nats: { url, credential: secrets.stack, system: secrets.system }, asWorker });
}

/** Starts any server, with this environment and no more; repeats `isReady` until it returns true. */
export async function startServer(
  name: string,
  folder: string,
  command: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  isReady: () => Promise<boolean>,
): Promise<TestServer> {
  const logPath = join(folder, `${name}.log`);
  let current = await launch();
  process.once('exit', () => signalProcess(current, 'SIGKILL')); // for a test that ends without its clean-up
  return {
    get process() {
      return current;
    },
    restart: async () => void (current = await launch()),
    kill: async () => {
      signalProcess(current, 'SIGKILL');
      await waitForExit(current, patienceMs);
    },
    stop: () => terminate(current, stopMs),
  };

  async function launch(): Promise<ProcessIdentity> {
    const log = openSync(logPath, 'a');
    const child = spawn(command, args, {
      env,
      stdio: ['ignore', log, log],
      detached: true,
    });
    closeSync(log);
    const identity = child.pid === undefined ? undefined : identify(child.pid);
    if (!identity) throw new Error(`${name} did not start: ${command}`);
    child.unref();
    const ready = await poll(async () => !isAlive(identity) || (await isReady()), {
      everyMs: 25,
      timeoutMs: patienceMs,
    });
    if (ready && isAlive(identity)) return identity;
    await terminate(identity, 0);
    throw new Error(`${name} did not get ready; its log:\n${readFileSync(logPath, 'utf8')}`);
  }
}
