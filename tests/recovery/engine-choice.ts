/** The engines on which a run of the suite is disturbed, and what a seed makes of them. */
import { at } from '../../core/at.ts';
import type { Tree } from '../../core/recipe/index.ts';
import { readEnvironment } from '../../infra/engines/environment.ts';
import { petrelHome } from '../../infra/home.ts';

export const engineChoices = ['torch', 'torch,hf', 'torch,vllm'] as const;

export interface EngineChoice {
  readonly trainer: 'torch';
  readonly sampler: 'native' | 'hf' | 'vllm';
}

/** How many processes train. */
export const trainerRanks = 2;

/** `text`: one of `engineChoices`. */
export function engineChoice(text: string): EngineChoice {
  if (!engineChoices.some((one) => one === text))
    throw new Error(`--engine is one of: ${engineChoices.join(' ')}; got ${text}`);
  const [, sampler = 'native'] = text.split(',');
  return { trainer: 'torch', sampler: sampler as EngineChoice['sampler'] };
}

/** Throws an error with the command that mends it when one of them is not installed. */
export function requireInstalled({ sampler }: EngineChoice): void {
  for (const name of sampler === 'vllm' ? ['torch', 'vllm'] : ['torch'])
    if (readEnvironment(petrelHome(), `${name}-cpu`) === undefined)
      throw new Error(`${name} is not installed here: petrel engine install ${name}`);
}

export interface Variant {
  /** What the run promises: of engines whose samples cannot be made again, the bits of each update at most. */
  readonly deterministic: boolean | 'replay';
  /** Trains a low-rank adapter. */
  readonly adapter: boolean;
  /** What the processes share beside the parameters. */
  readonly shared: 'nothing' | 'tokens' | 'matrices';
}

/** The native engine, which samples for some of these runs, has no adapters; those share no matrices. */
export function variantOf({ sampler }: EngineChoice, seed: number): Variant {
  const shared = at(['nothing', 'tokens', 'matrices'] as const, Math.floor(seed / 2) % 3);
  if (sampler === 'native') return { deterministic: seed % 4 !== 0, adapter: false, shared };
  const adapter = seed % 3 === 0;
  return {
    deterministic: seed % 2 === 1 ? 'replay' : false,
    adapter,
    shared: adapter && shared === 'matrices' ? 'tokens' : shared,
  };
}

/** Additions to the recipe of the suite. */
export function engineRecipe({ trainer, sampler }: EngineChoice, { deterministic, adapter, shared }: Variant): Tree {
  return {
    deterministic,
    trainer: {
      engine: trainer,
      fsdp_size: trainerRanks,
      ...(shared === 'tokens' && { ulysses_sequence_parallel_size: trainerRanks }),
      ...(shared === 'matrices' && { tensor_model_parallel_size: trainerRanks }),
    },
    rollout: { name: sampler },
    ...(adapter && { model: { lora_rank: 4, lora_alpha: 8 } }),
  };
}

export const engineTitle = ({ trainer, sampler }: EngineChoice, { deterministic, adapter, shared }: Variant): string =>
  `${trainer}${adapter ? ' with an adapter' : ''}${shared === 'nothing' ? '' : ` that shares ${shared}`}, ${sampler}, ` +
  `deterministic: ${deterministic}`;
