/** The engines of a process, and which of them serves a job. */
import { UnfitError } from '../../../core/errors.ts';
import type { Engines, ModelRef, TrainingEngine } from '../../../core/ports/engines.ts';
import type { EngineOptions } from '../../../core/ports/policy.ts';
import type { OwningSampler } from '../../../core/ports/sampler.ts';
import type { NumericProfile } from '../../../core/records/schema.ts';
import type { EngineFacts } from '../../../core/wire/engine-facts.ts';
import type { RolloutInput } from '../../../core/wire/jobs/index.ts';
import { factsOf, requireServed } from '../engines/profile.ts';

const trains = (engines: Engines): engines is TrainingEngine => engines.open !== undefined;
const trainsHint = 'trainer.engine=native, or trainer.engine=torch';

/** What decides which sampler it is, apart from the model. */
export type SamplerWanted = Pick<RolloutInput, 'sampler' | 'profile' | 'server' | 'tensorParallel'>;

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
  serving(profile: NumericProfile): TrainingEngine {
    const { name } = requireServed(profile, this.facts);
    const engines = this.#named(name);
    if (!trains(engines)) throw new UnfitError('OtherEngine', `the engine ${name} only samples`, { hint: trainsHint });
    return engines;
  }

  /** The engine that samples for a run. Throws UnfitError when this worker has none, or it cannot sample so. */
  sampling({ sampler, profile }: Pick<RolloutInput, 'sampler' | 'profile'>): Engines {
    if (sampler === profile.engine) return this.serving(profile);
    return this.#named(factsOf(sampler, this.facts).name);
  }

  /** A sampler with weights of its own. Throws UnfitError when this worker has none for the run. */
  ownSampler(wanted: SamplerWanted, model: ModelRef): Promise<OwningSampler> {
    const { name, sampler } = this.sampling(wanted);
    if (sampler === undefined)
      throw new UnfitError('OtherEngine', `the engine ${name} only trains and scores`, { hint: 'rollout.name=hf' });
    const { profile, server, tensorParallel } = wanted;
    const options = { ...this.optionsFor(profile), ...(tensorParallel !== undefined && { tensorParallel }) };
    return sampler(model, options, server);
  }

  optionsFor({ compute, deterministic, ranks, division }: NumericProfile): EngineOptions {
    const own = { ...(ranks !== undefined && { ranks }), ...(division && { division }) };
    return { compute, deterministic, threads: this.#threads, ...own };
  }

  #named(name: string): Engines {
    const found = this.#engines.find((engines) => engines.name === name);
    if (found === undefined) throw new Error(`the facts name an engine that is not here: ${name}`);
    return found;
  }
}
