/**
 * The workers and the dollars of a run that is followed. They are read beside the following, which waits for neither
 * the workers nor the store of the fleet: until a read has ended, and after one that failed, the last answer is shown.
 */
import type { NatsConnection } from '@nats-io/nats-core';
import type { Presence } from '../../core/wire/messages.ts';
import type { ApiContext } from '../context.ts';
import { RunCost } from '../fleet/run-cost.ts';

/** The machines that work for the runs of a stack, and what they have cost this run. */
export interface FollowedMachines {
  /** Processes that announce themselves. */
  readonly workers: number;
  readonly machines: number;
  /** What bought instances have cost for the run; absent where nothing was. */
  readonly usd?: number;
}

export class FollowedFleet {
  readonly #cost: RunCost;
  #seen: FollowedMachines | undefined;
  #reading = false;
  #isDue = true;

  constructor(context: Pick<ApiContext, 'home'>, runId: string) {
    this.#cost = new RunCost(context, runId);
  }

  /** Undefined before the first answer. */
  get seen(): FollowedMachines | undefined {
    return this.#seen;
  }

  /** An iteration was committed: the answer is out of date. */
  committed(): void {
    this.#isDue = true;
  }

  /** Reads what is due, one read at a time. `nc`: undefined while the stack is down; then the next look tries again. */
  look(nc: NatsConnection | undefined): void {
    if (nc === undefined || !this.#isDue || this.#reading) return;
    this.#isDue = false;
    this.#reading = true;
    void this.#read(nc).finally(() => {
      this.#reading = false;
    });
  }

  async #read(nc: NatsConnection): Promise<void> {
    const { listWorkers } = await import('../../infra/nats/jobs/presence.ts');
    const [workers, usd] = await Promise.all([
      listWorkers(nc).catch(() => undefined),
      this.#cost.usd().catch(() => undefined),
    ]);
    if (workers === undefined) return; // the connection was lost
    this.#seen = machinesOf(workers, usd ?? this.#seen?.usd);
  }
}

function machinesOf(workers: readonly Pick<Presence, 'instance'>[], usd: number | undefined): FollowedMachines {
  const machines = new Set(workers.map(({ instance }) => instance)).size;
  return { workers: workers.length, machines, ...(usd !== undefined && usd > 0 && { usd }) };
}
