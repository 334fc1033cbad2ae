/**
 * A stack whose rollouts and scores are made on two other machines, which have joined it over TLS. Each machine is a
 * process group with a home of its own, and reaches NATS through a proxy that can be cut, and S3 through another one. A
 * store that is a folder cannot be cut.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { packageRoot } from '../../infra/home.ts';
import { faultsVariable } from '../../log/faults/index.ts';
import { listWorkers } from '../../infra/nats/jobs/presence.ts';
import { freePorts } from '../../infra/ports.ts';
import { poll } from '../../infra/poll.ts';
import { ensureStack } from '../../infra/stack/index.ts';
import type { WorkerPool } from '../../infra/stack/index.ts';
import type { JoinFile } from '../../core/wire/join.ts';
import { runWords } from '../cli.ts';
import { startCutProxy } from '../cut-proxy.ts';
import type { CutProxy, LongLink } from '../cut-proxy.ts';
import { startMachine } from '../joined-machine.ts';
import type { JoinedMachine } from '../joined-machine.ts';
import { Bed } from './bed.ts';
import { patienceMs } from '../patience.ts';

const trainers: readonly WorkerPool[] = [{ name: 'train', count: 1, roles: ['trainer'], threads: 1 }];

export interface Machine extends JoinedMachine {
  /** Name of its processes at points of faults. */
  readonly name: string;
  /** The proxies between the machine and everything that it reaches, except for a folder. */
  readonly proxies: readonly CutProxy[];
  readonly instance: () => string | undefined;
}

export class MachineBed {
  readonly bed: Bed;
  readonly #store: string | undefined;
  readonly #link: LongLink | undefined;
  /** Port of the S3 server. */
  readonly #s3Port: number | undefined;
  #machines: Machine[] = [];
  #file: JoinFile | undefined;
  #count = 0;

  /**
   * `store`: default: a folder. The server of an S3 store must be on loopback, and the variables of the AWS SDK name
   * it. `link`: the way of each machine to everything that it reaches; default: loopback.
   */
  constructor(store?: string, link?: LongLink) {
    this.#store = store;
    this.#link = link;
    this.#s3Port = store?.startsWith('s3://') === true ? portOnLoopback(process.env[endpointVariable]) : undefined;
    this.bed = new Bed(store);
  }

  /** Does a cut keep a machine from the store? */
  get cutsStore(): boolean {
    return this.#s3Port !== undefined;
  }

  get machines(): readonly Machine[] {
    return this.#machines;
  }

  /** The stack and so many machines that take jobs. */
  async up(count = 2): Promise<void> {
    if (this.#file === undefined) {
      const [port] = (await freePorts(1)) as [number];
      const { home } = this.bed.loop;
      await ensureStack({ home, workers: trainers, listen: { host: '127.0.0.1', port } });
      await this.bed.up(trainers);
      const served = this.#store === undefined ? [] : ['--store', this.#store];
      this.#file = (await runWords(home, ['fleet', 'token', '--pool', 'lab', '--json', ...served])).json<JoinFile>();
    } else await this.bed.up(trainers);
    while (this.#machines.length < count) this.#machines.push(await this.#start());
    await this.ready();
  }

  /** A machine that is no longer counted: it was killed, or stays cut off. */
  forget(machine: Machine): void {
    this.#machines = this.#machines.filter((one) => one !== machine);
  }

  async remove(): Promise<void> {
    for (const machine of this.#machines) await end(machine);
    await this.bed.remove();
  }

  async #start(): Promise<Machine> {
    const file = this.#file;
    if (file === undefined) throw new Error('up() comes first');
    const name = `machine-${++this.#count}`;
    const home = join(this.bed.loop.home, name);
    mkdirSync(home, { mode: 0o700 });
    const proxy = await startCutProxy(Number(new URL(file.nats.url).port), this.#link);
    const s3 = this.#s3Port === undefined ? undefined : await startCutProxy(this.#s3Port, this.#link);
    const nats = { ...file.nats, url: `nats://127.0.0.1:${proxy.port}` };
    writeFileSync(join(home, 'join.json'), JSON.stringify({ ...file, nats }));
    const words = [join(packageRoot(), 'cli/bin.mjs'), 'worker', '--join', 'join.json', '--threads', '1'];
    const env = { PETREL_CHILD: name, [faultsVariable]: process.env[faultsVariable] ?? '', ...s3Environment(s3?.port) };
    const joined = startMachine({ home, words, env });
    const instance = () => /joined \S+ as (lab-[0-9a-f]{12})/.exec(joined.said())?.[1];
    return { ...joined, name, proxies: s3 === undefined ? [proxy] : [proxy, s3], instance };
  }

  /** Resolves when every machine is present. */
  async ready(): Promise<void> {
    const ready = async () => {
      const present = (await listWorkers(this.bed.loop.nc)).map(({ instance }) => instance);
      return this.#machines.every((machine) => present.includes(machine.instance() ?? ''));
    };
    if ((await poll(ready, { everyMs: 50, timeoutMs: patienceMs })) === true) return;
    throw new Error(`a machine is not there:\n${this.#machines.map(({ said }) => said()).join('\n')}`);
  }
}

/** Ends the machine and its proxies. */
export async function end(machine: Machine): Promise<void> {
  await machine.kill();
  for (const proxy of machine.proxies) await proxy.close();
}

const endpointVariable = 'AWS_ENDPOINT_URL';
const keyVariables = ['AWS_REGION', 'AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY'] as const;

function portOnLoopback(endpoint = ''): number {
  const port = /^http:\/\/127\.0\.0\.1:(\d+)\/?$/.exec(endpoint)?.[1];
  if (port !== undefined) return Number(port);
  throw new Error(
    `expected ${endpointVariable}=http://127.0.0.1:PORT, because a proxy stands before it, got "${endpoint}"`,
  );
}

function s3Environment(port: number | undefined): Record<string, string> {
  if (port === undefined) return {};
  const keys = keyVariables.map((name) => [name, process.env[name] ?? '']);
  return { ...Object.fromEntries(keys), [endpointVariable]: `http://127.0.0.1:${port}` };
}
