/** The engines of a process, and which of them serves a job. */
import type { Engines } from '../../../core/ports/engines.ts';
import type { EngineOptions } from '../../../core/ports/policy.ts';
import type { NumericProfile } from '../../../core/records/schema.ts';
import type { EngineFacts } from '../../../core/wire/engine-facts.ts';
import type { RolloutInput } from '../../../core/wire/jobs/index.ts';
import { factsOf, requireServed } from '../engines/profile.ts';

export class EngineChoice {
  /** What the engines say of themselves. */
  readonly facts: readonly EngineFacts[];
  readonly #engines: readonly Engines[];
  readonly #threads: number;

  constructor(engines: readonly Engines[], threads: number) {
    this.#engines = engines;
    this.#threads = threads;
    this.facts = engines.map((one) => one.facts());
  }

  /** The engine that serves the profile. Throws UnfitError when none does. */
  serving(profile: NumericProfile): Engines {
    return this.#named(requireServed(profile, this.facts).name);
  }

  /** The engine that samples for a run. Throws UnfitError when this worker has none, or it cannot sample so. */
  sampling({ sampler, profile }: Pick<RolloutInput, 'sampler' | 'profile'>): Engines {
    if (sampler === profile.engine) return this.serving(profile);
    return this.#named(factsOf(sampler, this.facts).name);
  }

  optionsFor({ compute, deterministic }: NumericProfile): EngineOptions {
    return { compute, deterministic, threads: this.#threads };
  }

  #named(name: string): Engines {
    const found = this.#engines.find((engines) => engines.name === name);
    if (found === undefined) throw new Error(`the facts name an engine that is not here: ${name}`);
    return found;
  }
}
