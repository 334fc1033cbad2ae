/**
 * The stack on which a seed of faults of machines is played: one at a time, because the processes of a stack find their
 * faults by a variable.
 */
import { ClusterBed } from './cluster-bed.ts';
import type { MachineBed } from './machine-bed.ts';
import { needsCluster } from './machine-plan.ts';
import type { MachinePlan } from './machine-plan.ts';
import { runClusterSeed, runMachineSeed } from './machine-seed.ts';
import type { MachineResult } from './machine-seed.ts';

export class MachineBeds {
  readonly #newBed: () => MachineBed;
  #on: MachineBed | ClusterBed | undefined;

  constructor(newBed: () => MachineBed) {
    this.#newBed = newBed;
  }

  /** Plays a seed; after a failed one, the next one gets a new stack. Throws as `runMachineSeed`. */
  async play(plan: MachinePlan): Promise<MachineResult> {
    if (this.#on !== undefined && this.#on instanceof ClusterBed !== needsCluster(plan)) await this.remove();
    this.#on ??= needsCluster(plan) ? new ClusterBed() : this.#newBed();
    try {
      return this.#on instanceof ClusterBed
        ? await runClusterSeed(this.#on, plan)
        : await runMachineSeed(this.#on, plan);
    } catch (error) {
      await this.remove();
      throw error;
    }
  }

  async remove(): Promise<void> {
    const last = this.#on;
    this.#on = undefined;
    await last?.remove();
  }
}
