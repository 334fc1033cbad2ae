/**
 * The supervisor: keeps the processes of the stack as the configuration wants them.
 *
 * Its children outlive it. Whoever starts it again finds them by their entries in stack.json, or by their environment.
 */
import { existsSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { builtFile, buildId, readTools } from '../home.ts';
import { newNatsKey } from '../nats/nkey.ts';
import { freePorts, isPortFree, loopback } from '../ports.ts';
import { newPayloadKey } from '../temporal/payload-codec.ts';
import { poll } from '../poll.ts';
import { adoptable, stopOrder, stopProcesses, strangers } from './adoption.ts';
import { Child } from './child.ts';
import { fingerprint } from './child-spec.ts';
import type { ChildSpec } from './child-spec.ts';
import { controlChild } from './children/control.ts';
import { natsChild } from './children/nats.ts';
import { temporalChild } from './children/temporal.ts';
import { workerChild } from './children/worker.ts';
import { ownIdentity } from './process.ts';
import {
  defaultPools,
  readConfig,
  readEndpoints,
  readStackFile,
  stackFile,
  stackFolder,
  writeEndpoints,
  writeStackFile,
} from './state.ts';
import type { ChildKind, Endpoints, StackConfig, StackInfo } from './state.ts';

type PortName = 'temporalPort' | 'natsPort';

/** How long dependants are held back for the servers, and start anyway: they retry by themselves. */
const serversReadyMs = 60_000;
/** How often it is looked for servers that are stuck, and a state that could not be written is written again. */
const tendMs = 1_000;
/** How long a port may be taken before it is another program's. */
const portMs = 1_000;

export class Supervisor {
  readonly #home: string;
  readonly #log: (line: string) => void;
  readonly #startedAt = new Date().toISOString();
  readonly #children = new Map<string, Child>();
  #endpoints: Endpoints;
  #config: StackConfig;
  #phase: StackInfo['phase'] = 'running';
  /** False until what the previous supervisor left is taken over: a part must never be published as the whole. */
  #begun = false;
  /** stack.json does not say what is so: there was no room for it. */
  #unwritten = false;
  /** Changes of the set of children happen one after the other. */
  #queue: Promise<void> = Promise.resolve();

  private constructor(home: string, endpoints: Endpoints, log: (line: string) => void) {
    this.#home = home;
    this.#endpoints = endpoints;
    this.#config = readConfig(home) ?? { pools: defaultPools };
    this.#log = log;
  }

  /** Starts or adopts everything. Resolves when each process exists; readiness is told by stack.json. */
  static async start(home: string, log: (line: string) => void): Promise<Supervisor> {
    const previous = readStackFile(stackFile(home));
    const endpoints = readEndpoints(home) ?? (await newEndpoints(home));
    const supervisor = new Supervisor(home, endpoints, log);
    await supervisor.#begin(previous);
    void supervisor.#tend();
    return supervisor;
  }

  /** Reads the configuration again and starts and stops workers to fit it. */
  applyConfig(): Promise<void> {
    return this.#enqueue(async () => {
      const config = readConfig(this.#home);
      if (this.#phase === 'stopping' || !config || JSON.stringify(config) === JSON.stringify(this.#config)) return;
      this.#config = config;
      this.#log(
        `pools: ${config.pools.map(({ name, count, roles }) => `${count} × ${name} (${roles.join(', ')})`).join('; ') || 'none'}`,
      );
      await this.#fitWorkers();
      this.#publish();
    });
  }

  /** Orderly end: workers, control, NATS, Temporal, each within its grace. */
  stop(): Promise<void> {
    this.#phase = 'stopping';
    this.#publish();
    return this.#enqueue(async () => {
      for (const kind of stopOrder) await all(this.#ofKind(kind), (child) => child.stop());
      await stopProcesses(strangers(this.#home, []), this.#log);
    });
  }

  /** False when somebody removed the stack's folder; there is nothing left to serve then. */
  get hasFolder(): boolean {
    return existsSync(stackFolder(this.#home));
  }

  async #begin(previous: StackInfo | undefined): Promise<void> {
    const specs = this.#wanted();
    const adopted = adoptable(this.#home, specs, previous);
    // Before anything is started: a stray server would hold the database and the ports.
    await stopProcesses(strangers(this.#home, [...adopted.values()]), this.#log);
    for (const spec of specs) this.#newChild(spec);
    for (const [name, process] of adopted) {
      this.#children.get(name)?.adopt(process, previous?.children.find((child) => child.name === name)?.restarts ?? 0);
    }
    this.#begun = true;
    this.#publish();
    const servers = [...this.#children.values()].filter(isServer);
    await startMissing(servers);
    void Promise.all(servers.map((child) => child.untilReady(serversReadyMs))).then(() =>
      this.#enqueue(() => startMissing([...this.#children.values()])),
    );
  }

  /** Until the end: makes whole what a full disk has left behind. */
  async #tend(): Promise<void> {
    while (this.#phase === 'running') {
      await delay(tendMs);
      if (this.#unwritten) this.#publish();
      await this.#enqueue(() =>
        all(this.#phase === 'running' ? this.#ofKind('nats') : [], (child) => child.replaceIfStuck()),
      );
    }
  }

  #newChild(spec: ChildSpec): Child {
    const hooks = { changed: () => this.#publish(), ended: () => void this.#endOrphans(), log: this.#log };
    const child = new Child(this.#home, spec, () => this.#plan(spec), hooks);
    this.#children.set(spec.name, child);
    return child;
  }

  /** Ends what processes that are gone had started outside their process group. */
  async #endOrphans(): Promise<void> {
    const kept = [...this.#children.values()].flatMap((child) => child.process ?? []);
    await stopProcesses(strangers(this.#home, kept), this.#log);
  }

  /** What to start under this name now: a server whose port was taken meanwhile gets another. */
  async #plan(first: ChildSpec): Promise<ChildSpec> {
    if (first.kind === 'temporal') await this.#leaveTakenPorts('temporalPort');
    if (first.kind === 'nats') await this.#leaveTakenPorts('natsPort');
    return this.#wanted().find(({ name }) => name === first.name) ?? first;
  }

  /** Chooses other ports where another program has them by now, and restarts those who were told the old ones. */
  async #leaveTakenPorts(...names: PortName[]): Promise<void> {
    const before = this.#endpoints;
    for (const name of names) {
      // A server that was killed may be in the midst of dying: its port is free when its last thread is gone.
      if (await poll(() => isPortFree(this.#endpoints[name]), { everyMs: 20, timeoutMs: portMs })) continue;
      const [port] = await freePorts(1);
      this.#log(`${name}: another program has ${this.#endpoints[name]} now; it becomes ${port}`);
      this.#endpoints = { ...this.#endpoints, [name]: port };
    }
    if (this.#endpoints === before) return;
    writeEndpoints(this.#home, this.#endpoints);
    this.#publish();
    const told = [...this.#children.values()].filter((child) => !isServer(child) && child.process);
    void this.#enqueue(() => all(told, (child) => child.replace()));
  }

  #wanted(): ChildSpec[] {
    const tools = readTools(this.#home);
    const programs = this.#config.programs ?? {
      control: builtFile('workers/control/main.js'),
      worker: builtFile('workers/main.js'),
    };
    return [
      temporalChild(this.#home, tools.temporal, this.#endpoints),
      natsChild(this.#home, tools['nats-server'], this.#endpoints),
      controlChild(this.#home, programs.control),
      ...this.#config.pools.flatMap((pool) =>
        Array.from({ length: pool.count }, (_, index) => workerChild(this.#home, programs.worker, pool, index)),
      ),
    ];
  }

  /**
   * Stops workers that are not wanted any more, replaces those that should be otherwise, starts the missing ones. The first
   * step of each is taken before anything is published, so that nobody takes the old fleet for the new one.
   */
  async #fitWorkers(): Promise<void> {
    const wanted = new Map(this.#wanted().map((spec) => [spec.name, spec]));
    const workers = this.#ofKind('worker');
    const unwanted = workers.filter(({ name }) => !wanted.has(name));
    const changed = workers.filter(({ name, state }) => {
      const spec = wanted.get(name);
      return spec !== undefined && state.fingerprint !== fingerprint(spec);
    });
    const added = [...wanted.values()]
      .filter(({ name }) => !this.#children.has(name))
      .map((spec) => this.#newChild(spec));
    await Promise.all([
      all(unwanted, (child) => child.stop()),
      all(changed, (child) => child.replace()),
      startMissing(added),
    ]);
    for (const { name } of unwanted) this.#children.delete(name);
  }

  #ofKind(kind: ChildKind): Child[] {
    return [...this.#children.values()].filter((child) => child.kind === kind);
  }

  #enqueue(work: () => Promise<void>): Promise<void> {
    const done = this.#queue.then(work);
    this.#queue = done.catch((error: unknown) => this.#log(`supervisor: ${String(error)}`));
    return done;
  }

  #publish(): void {
    if (!this.#begun || !this.hasFolder) return;
    const { temporalPort, natsPort, natsKey, natsSystemKey, payloadKey } = this.#endpoints;
    const info: StackInfo = {
      ...ownIdentity(),
      startedAt: this.#startedAt,
      build: buildId(),
      phase: this.#phase,
      temporal: { address: `${loopback}:${temporalPort}`, payloadKey },
      nats: { url: `nats://${loopback}:${natsPort}`, key: natsKey, systemKey: natsSystemKey },
      pools: this.#config.pools,
      children: [...this.#children.values()].map(({ state }) => state),
    };
    try {
      writeStackFile(this.#home, info);
      this.#unwritten = false;
    } catch (error) {
      this.#unwritten = true;
      this.#log(`stack.json could not be written: ${String(error)}`); // a full disk must not end the watch over the processes
    }
  }
}

async function newEndpoints(home: string): Promise<Endpoints> {
  const [temporalPort, natsPort] = (await freePorts(2)) as [number, number];
  const keys = { natsKey: newNatsKey(), natsSystemKey: newNatsKey(), payloadKey: newPayloadKey() };
  const endpoints = { temporalPort, natsPort, ...keys };
  writeEndpoints(home, endpoints);
  return endpoints;
}

const isServer = ({ kind }: Child): boolean => kind === 'temporal' || kind === 'nats';

const startMissing = (children: readonly Child[]): Promise<void> =>
  all(
    children.filter(({ state }) => state.state === 'stopped'),
    (child) => child.start(),
  );

async function all(children: readonly Child[], act: (child: Child) => Promise<void>): Promise<void> {
  await Promise.all(children.map(act));
}
