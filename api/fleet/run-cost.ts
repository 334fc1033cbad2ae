/** What bought instances have cost for one run until now: the part of `petrel cost` that belongs to it. */
import { stackName } from '../../infra/stack/index.ts';
import { fleetStore } from '../../infra/stack/fleet-notes.ts';
import { FleetLog } from '../../log/fleet/fleet-log.ts';
import { openExistingStore } from '../../infra/store/open.ts';
import type { ApiContext } from '../context.ts';
import { chargesOf } from './view.ts';

/** May be asked again and again: records that do not change are read once. */
export class RunCost {
  readonly #home: string;
  readonly #runId: string;
  #opened: { readonly url: string; readonly log: FleetLog } | undefined;

  constructor({ home }: Pick<ApiContext, 'home'>, runId: string) {
    this.#home = home;
    this.#runId = runId;
  }

  /** The cost in dollars; undefined without a fleet. Rejects when the store of the fleet does not answer. */
  async usd(): Promise<number | undefined> {
    const url = fleetStore(this.#home);
    if (url === undefined) return undefined;
    if (this.#opened?.url !== url)
      this.#opened = { url, log: new FleetLog(await openExistingStore(url), stackName(this.#home)) };
    const { log } = this.#opened;
    log.refresh();
    const charges = await chargesOf(log, new Date());
    return charges.reduce((sum, { run, microUsd }) => (run === this.#runId ? sum + microUsd : sum), 0) / 1e6;
  }
}
