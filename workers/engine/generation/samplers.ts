/** The samplers of a process, and what they generate at present. */
import type { PreemptedError } from '../../../core/errors.ts';
import type { RunId } from '../../../core/ids.ts';
import type { PolicyEngine } from '../../../core/ports/policy.ts';
import type { Sampler, SamplerRoom } from '../../../core/ports/sampler.ts';
import { Generation } from './generation.ts';

interface Open {
  readonly sampler: Promise<Sampler>;
  readonly generation: Generation;
  readonly room: SamplerRoom;
}

/** Whose weights are sampled: a policy's, in place, or a sampler's own. */
export type WeightsOwner = PolicyEngine | Sampler;

export class Samplers {
  readonly #open = new Map<WeightsOwner, Open>();

  /**
   * The generation on these weights. Its sizes only grow. Two runs with different sizes may share the weights, and more
   * room drops the samples in flight; so they must not take it from each other in turn. `make`: called for the first
   * one.
   */
  generationOf(owner: WeightsOwner, room: SamplerRoom, make: () => Promise<Sampler>): Generation {
    const known = this.#open.get(owner);
    if (known !== undefined && fits(room, known.room)) return known.generation;
    const grown = known === undefined ? room : largerOf(room, known.room);
    const interrupted = known?.generation.interrupt();
    const sampler = (async () => {
      await interrupted;
      const one = await (known?.sampler ?? make());
      await one.makeRoom(grown);
      return one;
    })();
    const generation = new Generation(sampler);
    this.#open.set(owner, { sampler, generation, room: grown });
    return generation;
  }

  /** Drops the samples in flight, since the weights are about to change. */
  async interrupt(owner: WeightsOwner): Promise<void> {
    await this.#open.get(owner)?.generation.interrupt();
  }

  /** Drops all samples in flight. */
  async interruptAll(reason: PreemptedError): Promise<void> {
    await Promise.all([...this.#open.values()].map(({ generation }) => generation.interrupt(reason)));
  }

  /** The run paused or ended: drops its samples in flight. */
  async abandon(runId: RunId): Promise<void> {
    await Promise.all([...this.#open.values()].map(({ generation }) => generation.abandon(runId)));
  }

  /** Closes what samples from these weights. */
  async close(owner: WeightsOwner): Promise<void> {
    const known = this.#open.get(owner);
    this.#open.delete(owner);
    await known?.generation.close();
  }

  /** The engine has ended by itself. */
  forget(owner: WeightsOwner): void {
    this.#open.delete(owner);
  }
}

const fits = (room: SamplerRoom, inside: SamplerRoom): boolean =>
  room.maxSeqs <= inside.maxSeqs && room.maxModelLen <= inside.maxModelLen;

const largerOf = (a: SamplerRoom, b: SamplerRoom): SamplerRoom => ({
  maxSeqs: Math.max(a.maxSeqs, b.maxSeqs),
  maxModelLen: Math.max(a.maxModelLen, b.maxModelLen),
});
