/** The engines that recipes can name, and what each can do as far as it is known where none of its workers runs. */

interface NamedEngine {
  /** It can be a `trainer.engine`. */
  readonly trains: boolean;
  /** It can be a `rollout.name`. */
  readonly samples: boolean;
  /** The Python environment in which it runs, which `petrel engine install` makes. Absent: it needs none. */
  readonly environment?: EngineEnvironmentName;
  /** It has low-rank adapters. */
  readonly adapters: boolean;
  /** It has mixtures of experts. */
  readonly mixtures: boolean;
}

export const engineEnvironments = ['torch', 'vllm'] as const;
export type EngineEnvironmentName = (typeof engineEnvironments)[number];

/** Tests add engines under other names, of which nothing is known here. */
export const namedEngines: Readonly<Record<string, NamedEngine>> = {
  native: { trains: true, samples: true, adapters: false, mixtures: false },
  torch: { trains: true, samples: false, environment: 'torch', adapters: true, mixtures: true },
  hf: { trains: false, samples: true, environment: 'torch', adapters: true, mixtures: true },
  vllm: { trains: false, samples: true, environment: 'vllm', adapters: true, mixtures: true },
};

/** The names of the engines of which this holds. */
export const enginesThat = (holds: (engine: NamedEngine) => boolean): string[] =>
  Object.keys(namedEngines).filter((name) => holds(namedEngines[name] as NamedEngine));
