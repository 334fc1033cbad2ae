/**
 * A cloud for tests: EC2's API on 127.0.0.1 over instances that are process groups. It has what other emulators lack:
 * tokens that never buy twice, scripted capacity, limits and faults, late visibility, boot times, interruptions, and
 * machines that really run and die. Tests call its methods; another process can call them over HTTP (server.ts).
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { PolicyDocument } from '../../infra/fleet/ec2/store-policy.ts';
import { usualAccount, poolKey } from './account.ts';
import type { Account, Market, PoolOfMachines } from './account.ts';
import { Faults } from './faults.ts';
import { TestInstance } from './instance.ts';
import type { Bill, InstanceOrder } from './instance.ts';

/** May be changed at any time. Milliseconds. */
export interface CloudSettings {
  /** Time from the launch to the first line of the user data. */
  bootMs: number;
  /** DescribeInstances and TerminateInstances do not know a younger instance. */
  visibleAfterMs: number;
  /** Time from the notice of an interruption to the end. */
  noticeMs: number;
  /** Longest page of an answer. */
  pageSize: number;
}

const usualSettings: CloudSettings = { bootMs: 0, visibleAfterMs: 0, noticeMs: 120_000, pageSize: 1_000 };

export interface SpotPriceEntry {
  readonly type: string;
  readonly zone: string;
  readonly usdPerHour: number;
  /** Milliseconds of the epoch. */
  readonly since: number;
}

export interface CloudOptions {
  readonly account?: Partial<Account>;
  readonly settings?: Partial<CloudSettings>;
  /** Environment of every machine: addresses of servers for example. */
  readonly env?: Readonly<Record<string, string>>;
}

export class TestCloud {
  readonly account: Account;
  readonly settings: CloudSettings;
  readonly faults = new Faults();
  readonly instances = new Map<string, TestInstance>();
  /** Token → its parameters and instances. */
  readonly tokens = new Map<string, { readonly parameters: string; readonly ids: readonly string[] }>();
  readonly prices: SpotPriceEntry[] = [];
  /** What machines leave on their disks. */
  readonly folder = mkdtempSync(join(tmpdir(), 'petrel-cloud-'));
  /** What the caller may do; undefined: everything. */
  policy: PolicyDocument | undefined;
  readonly #capacity = new Map<string, number>();
  readonly #limits = new Map<Market, number>();
  readonly #env: Readonly<Record<string, string>>;

  constructor({ account = {}, settings = {}, env = {} }: CloudOptions) {
    this.account = { ...usualAccount, ...account };
    this.settings = { ...usualSettings, ...settings };
    this.#env = env;
    for (const type of Object.keys(this.account.types))
      for (const zone of Object.keys(this.account.subnets)) this.setPrice(type, zone, 0.1, Date.now() - 3_600_000);
  }

  /** Ends all machines. */
  async close(): Promise<void> {
    await Promise.all([...this.instances.values()].map((instance) => instance.end('Server.InternalError')));
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 3 });
  }

  /** Sets how many instances can live there; undefined: as many as wanted. */
  setCapacity(pool: PoolOfMachines, count: number | undefined): void {
    if (count === undefined) this.#capacity.delete(poolKey(pool));
    else this.#capacity.set(poolKey(pool), count);
  }

  /** Sets how many instances of the account can live in this market. */
  setLimit(market: Market, count: number | undefined): void {
    if (count === undefined) this.#limits.delete(market);
    else this.#limits.set(market, count);
  }

  setPrice(type: string, zone: string, usdPerHour: number, since = Date.now()): void {
    this.prices.push({ type, zone, usdPerHour, since });
  }

  freeAt(pool: PoolOfMachines): number {
    return (this.#capacity.get(poolKey(pool)) ?? Infinity) - this.#living((at) => poolKey(at) === poolKey(pool));
  }

  freeOf(market: Market): number {
    return (this.#limits.get(market) ?? Infinity) - this.#living((at) => at.market === market);
  }

  #living(has: (order: InstanceOrder) => boolean): number {
    return [...this.instances.values()].filter(({ state, order }) => state !== 'terminated' && has(order)).length;
  }

  /** Counted from now on. It is `pending` until its metadata service listens and its boot time has passed. */
  launch(order: InstanceOrder): TestInstance {
    const profile = order.profile === undefined ? {} : this.account.profiles[order.profile];
    const instance = new TestInstance(order, {
      folder: this.folder,
      env: { ...this.#env, ...profile },
      credentials: order.profile === undefined ? undefined : this.account.credentials[order.profile],
      bootMs: this.faults.takeFailedBoot() ? Infinity : this.settings.bootMs,
    });
    this.instances.set(instance.id, instance);
    return instance;
  }

  isVisible({ launchedAt }: TestInstance): boolean {
    return Date.now() - launchedAt >= this.settings.visibleAfterMs;
  }

  /** Throws for an id that it never gave. */
  instance(id: string): TestInstance {
    const found = this.instances.get(id);
    if (found === undefined)
      throw new Error(`the test cloud has no instance ${id}; it has ${[...this.instances.keys()].join(', ')}`);
    return found;
  }

  /** The two minutes' notice, and then the end. */
  interrupt(id: string, noticeMs = this.settings.noticeMs): void {
    this.instance(id).interrupt(noticeMs);
  }

  recommendRebalance(id: string): void {
    this.instance(id).recommendRebalance();
  }

  /** The machine is gone without notice. */
  lose(id: string): Promise<void> {
    const instance = this.instance(id);
    return instance.end(instance.order.market === 'spot' ? 'Server.SpotInstanceTermination' : 'Server.InternalError');
  }

  /** Everything that was bought, in order. */
  bills(): Bill[] {
    return [...this.instances.values()].map((instance) => instance.bill());
  }
}
