/** A stack with a fleet on the test cloud, and the injector of faults. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { faultsVariable } from '../../log/faults/index.ts';
import { poll } from '../../infra/poll.ts';
import { freePorts } from '../../infra/ports.ts';
import { ensureStack, stackName } from '../../infra/stack/index.ts';
import type { WorkerPool } from '../../infra/stack/index.ts';
import { FleetLog } from '../../log/fleet/fleet-log.ts';
import { runWords } from '../cli.ts';
import type { CommandResult } from '../cli.ts';
import type { CloudOptions } from '../cloud/cloud.ts';
import { startTestCloud } from '../cloud/server.ts';
import type { ServedCloud } from '../cloud/server.ts';
import { useTestCredentials } from '../cloud/use.ts';
import { Injector } from '../inject.ts';
import { LoopUnderTest } from '../loop-under-test.ts';
import { patienceMs } from '../patience.ts';

export const trainers: readonly WorkerPool[] = [{ name: 'train', count: 1, roles: ['trainer'], threads: 1 }];
const patience = { everyMs: 100, timeoutMs: patienceMs };

export class FleetBed {
  readonly loop = new LoopUnderTest();
  readonly injector: Injector;
  #served: ServedCloud | undefined;

  readonly #cloud: CloudOptions;

  constructor(cloud: CloudOptions = {}) {
    this.#cloud = cloud;
    const folder = join(this.loop.home, 'faults');
    process.env[faultsVariable] = folder; // only the stack's processes read it from now on
    this.injector = new Injector(this.loop.home, folder);
  }

  get served(): ServedCloud {
    if (this.#served === undefined) throw new Error('up() comes first');
    return this.#served;
  }

  async up(): Promise<void> {
    if (this.#served !== undefined) return;
    this.#served = await startTestCloud(this.#cloud);
    process.env['AWS_ENDPOINT_URL_EC2'] = this.#served.endpoint;
    useTestCredentials();
    const [port] = (await freePorts(1)) as [number];
    await ensureStack({ home: this.loop.home, workers: trainers, listen: { host: '127.0.0.1', port } });
    await this.loop.up(trainers);
  }

  petrel(...words: string[]): Promise<CommandResult> {
    return runWords(this.loop.home, words);
  }

  /** Applies a fleet of one pool, `samplers`. */
  async apply(pool: object = {}, fleet: object = {}): Promise<CommandResult> {
    const path = join(this.loop.home, 'fleet.yaml');
    // JSON is YAML.
    writeFileSync(path, JSON.stringify({ ...fleet, pools: { samplers: { ...this.usualPool(), ...pool } } }));
    return this.petrel('fleet', 'apply', path);
  }

  usualPool(): { readonly ec2: Readonly<Record<string, unknown>> } & Readonly<Record<string, unknown>> {
    const { region, image, subnets, securityGroup } = this.served.cloud.account;
    const ec2 = { region, image, types: ['c7i.2xlarge'], subnets, security_groups: [securityGroup] };
    return { provider: 'ec2', max: 2, idle: '2s', lifetime: '1h', join_within: '1m', own_scorers: 'open', ec2 };
  }

  /** The records as they are now. */
  log(): FleetLog {
    return new FleetLog(this.loop.store, stackName(this.loop.home));
  }

  /** Waits. Throws with what the control process said. */
  async until(what: string, holds: () => Promise<boolean> | boolean): Promise<void> {
    if ((await poll(holds, patience)) === true) return;
    const bills = JSON.stringify(this.served.cloud.bills(), null, 1);
    const plan = (await this.petrel('fleet', 'explain')).out;
    throw new Error(`waited in vain until ${what}\n${plan}\n${bills}`);
  }

  /** Resolves when this many instances have joined and are not to leave. */
  ready(count: number): Promise<void> {
    return this.until(`${count} instances are ready`, async () => {
      const all = await this.log().instances();
      return all.filter(({ ready, leaving, ended }) => ready && !leaving && !ended).length === count;
    });
  }

  /** Resolves when nothing is bought any more, and the records say so. */
  empty(): Promise<void> {
    return this.until('nothing is left', async () => {
      const all = await this.log().instances();
      return all.every(({ ended }) => ended !== undefined) && this.living().length === 0;
    });
  }

  living() {
    return this.served.cloud.bills().filter(({ ended }) => ended === undefined);
  }

  async remove(): Promise<void> {
    this.injector.disarmAll();
    this.injector.close();
    try {
      await this.loop.remove();
    } finally {
      await this.#served?.close();
    }
  }
}
