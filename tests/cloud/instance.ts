/** One instance: what was ordered, its machine, its metadata service, and its bill. */
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import type { PoolOfMachines, RoleCredentials } from './account.ts';
import { consoleOf, startMachine } from './machine.ts';
import type { Machine } from './machine.ts';
import { startMetadata } from './metadata.ts';
import type { MetadataService } from './metadata.ts';

export interface InstanceOrder extends PoolOfMachines {
  readonly image: string;
  readonly subnet: string;
  readonly region: string;
  readonly userData: string;
  readonly tags: Readonly<Record<string, string>>;
  /** Name of the instance profile. */
  readonly profile?: string | undefined;
  readonly token: string | undefined;
  /** Does the metadata service show the tags? */
  readonly showsTags: boolean;
}

export type InstanceState = 'pending' | 'running' | 'shutting-down' | 'terminated';

/** Why an instance ended, in EC2's words. */
export type EndCode =
  | 'Client.UserInitiatedShutdown'
  | 'Client.InstanceInitiatedShutdown'
  | 'Server.SpotInstanceTermination'
  | 'Server.InternalError';

/** What was bought. Times in ISO. */
export interface Bill extends PoolOfMachines {
  readonly id: string;
  readonly launched: string;
  /** Absent while it runs. */
  readonly ended?: string;
  readonly reason?: EndCode;
  readonly tags: Readonly<Record<string, string>>;
}

export interface Surroundings {
  readonly folder: string;
  readonly env: Readonly<Record<string, string>>;
  /** Credentials of the role of its profile. */
  readonly credentials?: RoleCredentials | undefined;
  /** Infinity: it never boots. */
  readonly bootMs: number;
}

export class TestInstance {
  readonly id = `i-0${randomBytes(8).toString('hex')}`;
  readonly launchedAt = Date.now();
  readonly order: InstanceOrder;
  /** Resolves when its metadata service listens. */
  readonly launched: Promise<void>;
  /** Resolves when it is terminated, with the reason. */
  readonly terminated: Promise<EndCode>;
  state: InstanceState = 'pending';
  endCode: EndCode | undefined;
  endedAt: number | undefined;
  readonly #surroundings: Surroundings;
  readonly #timers: NodeJS.Timeout[] = [];
  #resolveTerminated: (code: EndCode) => void = () => {};
  #metadata: MetadataService | undefined;
  #machine: Machine | undefined;

  constructor(order: InstanceOrder, surroundings: Surroundings) {
    this.order = order;
    this.#surroundings = surroundings;
    this.terminated = new Promise((resolve) => (this.#resolveTerminated = resolve));
    this.launched = this.#launch(surroundings.bootMs);
  }

  async #launch(bootMs: number): Promise<void> {
    this.#metadata = await startMetadata(this.#entries());
    if (this.state !== 'pending') return;
    if (bootMs === Infinity) this.state = 'running';
    else this.#timers.push(setTimeout(() => this.#boot(), bootMs));
  }

  /** The instance's folder below the cloud's folder. */
  get folder(): string {
    return join(this.#surroundings.folder, this.id);
  }

  get consoleFile(): string {
    return consoleOf(this.folder);
  }

  /** Process id of the machine: the leader of its session. */
  get pid(): number | undefined {
    return this.#machine?.pid;
  }

  #boot(): void {
    this.state = 'running';
    const endpoint = this.#metadata?.endpoint ?? '';
    const env = { AWS_EC2_METADATA_SERVICE_ENDPOINT: endpoint, ...this.#surroundings.env };
    this.#machine = startMachine({ folder: this.folder, userData: this.order.userData, env });
    // InstanceInitiatedShutdownBehavior: terminate
    void this.#machine.ended.then(() => this.end('Client.InstanceInitiatedShutdown'));
  }

  /** The notice comes at once, the end after `noticeMs`. */
  interrupt(noticeMs: number): void {
    const time = new Date(Date.now() + noticeMs).toISOString().replace(/\.\d+Z$/, 'Z');
    this.#metadata?.set('meta-data/spot/instance-action', JSON.stringify({ action: 'terminate', time }));
    this.#metadata?.set('meta-data/spot/termination-time', time);
    this.#timers.push(setTimeout(() => void this.end('Server.SpotInstanceTermination'), noticeMs));
  }

  recommendRebalance(): void {
    const noticeTime = new Date().toISOString();
    this.#metadata?.set('meta-data/events/recommendations/rebalance', JSON.stringify({ noticeTime }));
  }

  /** Resolves when no process is left. The first reason counts. */
  async end(code: EndCode): Promise<void> {
    if (this.state === 'shutting-down' || this.state === 'terminated') return void (await this.terminated);
    this.state = 'shutting-down';
    this.endCode = code;
    await this.launched;
    for (const timer of this.#timers) clearTimeout(timer);
    this.#machine?.kill();
    await this.#machine?.ended;
    await this.#metadata?.close();
    this.state = 'terminated';
    this.endedAt = Date.now();
    this.#resolveTerminated(code);
  }

  bill(): Bill {
    const { type, zone, market, tags } = this.order;
    return {
      id: this.id,
      type,
      zone,
      market,
      tags,
      launched: new Date(this.launchedAt).toISOString(),
      ...(this.endedAt !== undefined && { ended: new Date(this.endedAt).toISOString() }),
      ...(this.endCode !== undefined && { reason: this.endCode }),
    };
  }

  #entries(): Record<string, string> {
    const { type, zone, region, market, image, userData, tags, showsTags } = this.order;
    return {
      'meta-data/instance-id': this.id,
      'meta-data/instance-type': type,
      'meta-data/instance-life-cycle': market === 'spot' ? 'spot' : 'on-demand',
      'meta-data/ami-id': image,
      'meta-data/placement/availability-zone': zone,
      'meta-data/placement/region': region,
      'user-data': userData,
      ...this.#credentialEntries(),
      ...(showsTags &&
        Object.fromEntries(Object.entries(tags).map(([key, value]) => [`meta-data/tags/instance/${key}`, value]))),
    };
  }
  /**
   * The entries as the SDK reads them: the profile's name below the folder, then its credentials. They last longer than
   * any test.
   */
  #credentialEntries(): Record<string, string> {
    const { credentials } = this.#surroundings;
    if (credentials === undefined) return {};
    const { accessKey: AccessKeyId, secretKey: SecretAccessKey } = credentials;
    const Expiration = new Date(this.launchedAt + 24 * 3_600_000).toISOString();
    const answer = { Code: 'Success', Type: 'AWS-HMAC', AccessKeyId, SecretAccessKey, Token: '', Expiration };
    return { [`meta-data/iam/security-credentials/${this.order.profile}`]: JSON.stringify(answer) };
  }
}
