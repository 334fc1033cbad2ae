/** A stack whose NATS is a cluster of three servers that it does not own. Its workers are on its own machine. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { separatePools } from '../loop-under-test.ts';
import { startNatsCluster } from '../nats-cluster.ts';
import type { NatsCluster } from '../nats-cluster.ts';
import { Bed } from './bed.ts';

export class ClusterBed {
  readonly bed: Bed;
  #cluster: NatsCluster | undefined;

  /** `store`: default: a folder. */
  constructor(store?: string) {
    this.bed = new Bed(store);
  }

  get cluster(): NatsCluster {
    if (this.#cluster === undefined) throw new Error('up() comes first');
    return this.#cluster;
  }

  async up(): Promise<void> {
    const { home } = this.bed.loop;
    if (this.#cluster === undefined) {
      this.#cluster = await startNatsCluster();
      const { urls, credentials, systemCredentials } = this.#cluster;
      const nats = { urls, credentials, system_credentials: systemCredentials };
      writeFileSync(join(home, 'stack.yaml'), JSON.stringify({ nats }));
    }
    await this.bed.up(separatePools);
  }

  async remove(): Promise<void> {
    try {
      await this.bed.remove();
    } finally {
      await this.#cluster?.stop();
    }
  }
}
