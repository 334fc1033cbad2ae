/**
 * The scorer hosts that a worker keeps between jobs. Runs do not share scorers, and a run's scorers end with it. Of the
 * others the least recently used ones are closed.
 */
import type { ScorerHost } from '../../rewards/host/scorer-host.ts';

/** Number of scorers whose processes are kept, by last use. */
const keptHosts = 4;

interface KeptHost {
  readonly runId: string;
  readonly ready: Promise<ScorerHost>;
  /** Jobs that use it now. */
  jobs: number;
}

export class KeptHosts {
  /** Hosts in the order of last use. */
  readonly #hosts = new Map<string, KeptHost>();

  get count(): number {
    return this.#hosts.size;
  }

  /**
   * Works with the host of this id, which is started when there is none. Simultaneous calls with one id share the host.
   */
  async use<T>(
    id: string,
    runId: string,
    start: () => Promise<ScorerHost>,
    work: (host: ScorerHost) => Promise<T>,
  ): Promise<T> {
    const kept = this.#hosts.get(id) ?? this.#started(id, runId, start);
    this.#hosts.delete(id);
    this.#hosts.set(id, kept);
    const host = await kept.ready;
    kept.jobs += 1;
    try {
      return await work(host);
    } finally {
      kept.jobs -= 1;
      await this.#closeOld();
    }
  }

  /** Ends the run's scorer processes; samples that they are scoring are rejected. */
  async endRun(runId: string): Promise<void> {
    const own = [...this.#hosts].filter(([, host]) => host.runId === runId);
    for (const [id] of own) this.#hosts.delete(id);
    await Promise.all(own.map(([, host]) => closed(host)));
  }

  async close(): Promise<void> {
    await Promise.all([...this.#hosts.values()].map(closed));
  }

  #started(id: string, runId: string, start: () => Promise<ScorerHost>): KeptHost {
    const kept: KeptHost = { runId, ready: start(), jobs: 0 };
    // The run may have ended during the start and begun again with a new host under the same id.
    kept.ready.catch(() => this.#hosts.get(id) === kept && this.#hosts.delete(id));
    return kept;
  }

  async #closeOld(): Promise<void> {
    for (const [id, kept] of [...this.#hosts].slice(0, -keptHosts)) {
      await kept.ready.catch(() => undefined);
      if (kept.jobs > 0 || this.#hosts.get(id) !== kept) continue;
      this.#hosts.delete(id);
      await closed(kept);
    }
  }
}

async function closed({ ready }: KeptHost): Promise<void> {
  const host = await ready.catch(() => undefined); // it could not be started, so there is nothing to end
  await host?.close();
}
