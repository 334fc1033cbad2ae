/**
 * The supervisor: reconciles the processes of the stack with the configuration.
 *
 * Its children survive it. A restarted supervisor finds them by their entries in stack.json or by their environment.
 */
import { existsSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { builtProgram, buildId, readTools } from '../home.ts';
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
import { derivedKey } from './derived-key.ts';
import { instanceName } from './identity.ts';
import { whyNotHere } from './here.ts';
import { certificateFor } from './listen.ts';
import { currentSecrets, newNatsSecrets } from './nats-secrets.ts';
import { ownIdentity } from './process.ts';
import {
  defaultPools,
  readConfig,
  natsUrl,
  readEndpoints,
  readStackFile,
  stackFile,
  stackFolder,
  writeEndpoints,
  writeStackFile,
} from './state.ts';
import type { ChildKind, Endpoints, KeptEndpoints, StackConfig, StackInfo } from './state.ts';

type PortName = 'temporalPort' | 'natsPort';

/** How long dependants wait for the servers. After that they start anyway and retry by themselves. */
const serversReadyMs = 60_000;
/** How often it checks for stuck servers, and repeats a failed write of the state. */
const tendMs = 1_000;
/** An address that comes or goes must stay so for this many looks: a lease that is renewed is no reason to restart. */
const steadyLooks = 3;
/** After this time, a taken port counts as used by another program. */
const portMs = 1_000;

export class Supervisor {
  readonly #home: string;
  readonly #log: (line: string) => void;
  readonly #startedAt = new Date().toISOString();
  readonly #children = new Map<string, Child>();
  #endpoints: Endpoints;
  #config: StackConfig;
  /** Why machines cannot join, although the configuration has an address for them: NATS listens on loopback then. */
  #away: string | undefined;
  /** Looks in a row that found the opposite of what `#away` says. */
  #looks = 0;
  #phase: StackInfo['phase'] = 'running';
  /**
   * False until the processes of the previous supervisor are adopted, so that an incomplete list is never published.
   */
  #started = false;
  /** stack.json is out of date, because the disk was full. */
  #unwritten = false;
  /** Changes of the set of children run one after the other. */
  #queue: Promise<void> = Promise.resolve();

  private constructor(home: string, places: Places, config: StackConfig, log: (line: string) => void) {
    this.#home = home;
    this.#endpoints = places.endpoints;
    this.#away = places.away;
    this.#config = config;
    this.#log = log;
  }

  /** Starts or adopts all processes. Resolves when each process exists; stack.json shows when they are ready. */
  static async start(home: string, log: (line: string) => void): Promise<Supervisor> {
    const previous = readStackFile(stackFile(home));
    const config = readConfig(home) ?? { pools: defaultPools };
    const supervisor = new Supervisor(home, await placesOf(home, config), config, log);
    await supervisor.#begin(previous);
    void supervisor.#tend();
    return supervisor;
  }

  /** Reads the configuration again, and starts and stops workers to match it. */
  applyConfig(): Promise<void> {
    return this.#enqueue(async () => {
      const config = readConfig(this.#home);
      if (this.#phase === 'stopping' || !config || JSON.stringify(config) === JSON.stringify(this.#config)) return;
      await this.#listen(config);
      this.#config = config;
      this.#log(
        `pools: ${config.pools.map(({ name, count, roles }) => `${count} × ${name} (${roles.join(', ')})`).join('; ') || 'none'}`,
      );
      await this.#fitWorkers();
      this.#publish();
    });
  }

  /** The NATS server gets another address, and with it every process that has the old one. */
  async #listen(config: StackConfig): Promise<void> {
    const places = await placesOf(this.#home, config);
    if (isDeepStrictEqual(config.listen, this.#config.listen) && places.away === this.#away) return;
    const clients = [...this.#children.values()].filter((child) => !isServer(child));
    // Children stop before the new address is published: a reader would take the stack for ready.
    await all(clients, (child) => child.stop());
    this.#endpoints = places.endpoints;
    this.#away = places.away;
    this.#config = config;
    this.#log(`NATS listens at ${natsUrl(this.#endpoints)}${places.away === undefined ? '' : `: ${places.away}`}`);
    const servers = this.#ofKind('nats');
    await all(servers, (child) => child.replace());
    await Promise.all(servers.map((child) => child.untilReady(serversReadyMs)));
    await all(clients, (child) => child.replace());
  }

  /** Orderly end: workers, control, NATS, Temporal, each within its grace period. */
  stop(): Promise<void> {
    this.#phase = 'stopping';
    this.#publish();
    return this.#enqueue(async () => {
      for (const kind of stopOrder) await all(this.#ofKind(kind), (child) => child.stop());
      await stopProcesses(strangers(this.#home, []), this.#log);
    });
  }

  /** False when the stack's folder was removed; then the supervisor ends. */
  get hasFolder(): boolean {
    return existsSync(stackFolder(this.#home));
  }

  async #begin(previous: StackInfo | undefined): Promise<void> {
    const specs = this.#wanted();
    const adopted = adoptable(this.#home, specs, previous);
    // Before any start, because an orphaned server would hold the database and the ports.
    await stopProcesses(strangers(this.#home, [...adopted.values()]), this.#log);
    for (const spec of specs) this.#newChild(spec);
    for (const [name, process] of adopted) {
      this.#children.get(name)?.adopt(process, previous?.children.find((child) => child.name === name)?.restarts ?? 0);
    }
    this.#started = true;
    this.#publish();
    const servers = [...this.#children.values()].filter(isServer);
    await startMissing(servers);
    void Promise.all(servers.map((child) => child.untilReady(serversReadyMs))).then(() =>
      this.#enqueue(() => startMissing([...this.#children.values()])),
    );
  }

  /** Repairs, until the end, what a full disk has prevented. */
  async #tend(): Promise<void> {
    while (this.#phase === 'running') {
      await delay(tendMs);
      if (this.#unwritten) this.#publish();
      // A disk that is full, for one, must not end the supervision: the next look tries again.
      await this.#followAddress().catch((error: unknown) => this.#log(`address of --listen: ${String(error)}`));
      await this.#enqueue(() =>
        all(this.#phase === 'running' ? this.#ofKind('nats') : [], (child) => child.replaceIfStuck()),
      ).catch((error: unknown) => this.#log(`stuck servers: ${String(error)}`));
    }
  }

  /** Follows the address where machines join: work of this machine goes on over loopback while it has not got it. */
  async #followAddress(): Promise<void> {
    const host = this.#config.listen?.host;
    const why = host === undefined ? undefined : await whyNotHere(host);
    this.#looks = (why === undefined) === (this.#away === undefined) ? 0 : this.#looks + 1;
    if (this.#looks < steadyLooks || this.#phase !== 'running') return;
    this.#looks = 0;
    await this.#enqueue(async () => {
      await this.#listen(this.#config);
      this.#publish();
    });
  }

  #newChild(spec: ChildSpec): Child {
    const hooks = { changed: () => this.#publish(), ended: () => void this.#endOrphans(), log: this.#log };
    const child = new Child(this.#home, spec, () => this.#plan(spec), hooks);
    this.#children.set(spec.name, child);
    return child;
  }

  /** Ends processes that dead processes had started outside their process group. */
  async #endOrphans(): Promise<void> {
    const kept = [...this.#children.values()].flatMap((child) => child.process ?? []);
    await stopProcesses(strangers(this.#home, kept), this.#log);
  }

  /** The current spec for this name: a server whose port was taken by another program gets another port. */
  async #plan(first: ChildSpec): Promise<ChildSpec> {
    if (first.kind === 'temporal') await this.#leaveTakenPorts('temporalPort');
    if (first.kind === 'nats') await this.#leaveTakenPorts('natsPort');
    return this.#wanted().find(({ name }) => name === first.name) ?? first;
  }

  /** Chooses other ports when another program has taken them, and restarts the processes that use the old ones. */
  async #leaveTakenPorts(...names: PortName[]): Promise<void> {
    const before = this.#endpoints;
    for (const name of names) {
      // Machines that join know the address.
      if (name === 'natsPort' && this.#endpoints.tls !== undefined) continue;
      // A killed server may still be ending: its port is free when its last thread is gone.
      if (await poll(() => isPortFree(this.#endpoints[name]), { everyMs: 20, timeoutMs: portMs })) continue;
      const [port] = await freePorts(1);
      this.#log(`${name}: another program has ${this.#endpoints[name]} now; it becomes ${port}`);
      this.#endpoints = { ...this.#endpoints, [name]: port };
    }
    if (this.#endpoints === before) return;
    // The kept ones are for when the address is back.
    if (this.#away === undefined) writeEndpoints(this.#home, this.#endpoints);
    this.#publish();
    const told = [...this.#children.values()].filter((child) => !isServer(child) && child.process);
    void this.#enqueue(() => all(told, (child) => child.replace()));
  }

  #wanted(): ChildSpec[] {
    const tools = readTools(this.#home);
    const programs = this.#config.programs ?? {
      control: builtProgram('control'),
      worker: builtProgram('worker'),
    };
    const { servers } = this.#config;
    return [
      ...(servers?.temporal ? [] : [temporalChild(this.#home, tools.temporal, this.#endpoints)]),
      ...(servers?.nats ? [] : [natsChild(this.#home, tools['nats-server'], this.#endpoints)]),
      controlChild(this.#home, programs.control),
      ...this.#config.pools.flatMap((pool) =>
        Array.from({ length: pool.count }, (_, index) => workerChild(this.#home, programs.worker, pool, index)),
      ),
    ];
  }

  /**
   * Stops unwanted workers, replaces changed ones and starts missing ones. The first step of each happens before the
   * state is published, so that no reader mistakes the old fleet for the new one.
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
    if (!this.#started || !this.hasFolder) return;
    const { temporalPort, nats, tls } = this.#endpoints;
    const { servers } = this.#config;
    const payloadKey = servers?.shared
      ? derivedKey(servers.shared.key, 'payloads for Temporal', 32).toString('base64')
      : this.#endpoints.payloadKey;
    const info: StackInfo = {
      ...ownIdentity(),
      startedAt: this.#startedAt,
      build: buildId(),
      phase: this.#phase,
      temporal: servers?.temporal
        ? { ...servers.temporal, payloadKey, ofOthers: true }
        : { address: `${loopback}:${temporalPort}`, payloadKey },
      nats: servers?.nats
        ? { ...servers.nats, ofOthers: true }
        : {
            url: natsUrl(this.#endpoints),
            ca: tls?.ca,
            credential: nats.stack,
            system: nats.system,
            workers: nats.workers,
          },
      pools: this.#config.pools,
      ...(this.#config.listen && { listen: this.#config.listen }),
      ...(this.#away !== undefined && { away: this.#away }),
      children: [...this.#children.values()].map(({ state }) => state),
    };
    try {
      writeStackFile(this.#home, info);
      this.#unwritten = false;
    } catch (error) {
      this.#unwritten = true;
      this.#log(`stack.json could not be written: ${String(error)}`); // a full disk must not end the supervision
    }
  }
}

/** The endpoints of the last start. Missing ones are made, and kept for the next start. */
async function endpointsOf(home: string, { listen }: StackConfig): Promise<Endpoints> {
  const kept = readEndpoints(home);
  const { tls: before, ...ports } = kept ?? (await newPorts());
  const instance = instanceName(home);
  const nats = kept?.nats === undefined ? await newNatsSecrets(instance) : await currentSecrets(kept.nats, instance);
  const tls = listen && (await certificateFor(listen.host, before));
  const endpoints = { ...ports, natsPort: listen?.port ?? ports.natsPort, nats, ...(tls && { tls }) };
  if (!isDeepStrictEqual(endpoints, kept)) writeEndpoints(home, endpoints);
  return endpoints;
}

interface Places {
  readonly endpoints: Endpoints;
  readonly away: string | undefined;
}

/**
 * The addresses at which the servers listen now. Without the address for machines that join, NATS listens on loopback,
 * as when there is none.
 */
async function placesOf(home: string, config: StackConfig): Promise<Places> {
  const endpoints = await endpointsOf(home, config);
  const away = config.listen && (await whyNotHere(config.listen.host));
  if (away === undefined) return { endpoints, away };
  const { tls: _, ...onLoopback } = endpoints;
  return { endpoints: onLoopback, away };
}

async function newPorts(): Promise<Omit<KeptEndpoints, 'nats'>> {
  const [temporalPort, natsPort] = (await freePorts(2)) as [number, number];
  return { temporalPort, natsPort, payloadKey: newPayloadKey() };
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
