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
  /** Keeps its state in bf16. */
  readonly narrow: boolean;
}

/**
 * The native engine, which samples for some of these runs, has no adapters, and not on each processor products in bf16;
 * adapters share no matrices.
 */
export function variantOf({ sampler }: EngineChoice, seed: number): Variant {
  const shared = at(['nothing', 'tokens', 'matrices'] as const, Math.floor(seed / 2) % 3);
  if (sampler === 'native') return { deterministic: seed % 4 !== 0, adapter: false, shared, narrow: false };
  const adapter = seed % 3 === 0;
  return {
    deterministic: seed % 2 === 1 ? 'replay' : false,
    adapter,
    shared: adapter && shared === 'matrices' ? 'tokens' : shared,
    narrow: seed % 5 === 1,
  };
}

/** Additions to the recipe of the suite. */
export function engineRecipe({ trainer, sampler }: EngineChoice, variant: Variant): Tree {
  const { deterministic, adapter, shared, narrow } = variant;
  const model = {
    ...(adapter && { lora_rank: 4, lora_alpha: 8 }),
    ...(narrow && { compute_dtype: 'bf16' }),
  };
  return {
    deterministic,
    trainer: {
      engine: trainer,
      fsdp_size: trainerRanks,
      ...(shared === 'tokens' && { ulysses_sequence_parallel_size: trainerRanks }),
      ...(shared === 'matrices' && { tensor_model_parallel_size: trainerRanks }),
      ...(narrow && { state_dtype: 'bf16' }),
    },
    rollout: { name: sampler },
    model,
  };
}

export function engineTitle({ trainer, sampler }: EngineChoice, variant: Variant): string {
  const { deterministic, adapter, shared, narrow } = variant;
  const parts = [adapter && ' with an adapter', shared !== 'nothing' && ` that shares ${shared}`, narrow && ' in bf16'];
  return `${trainer}${parts.filter(Boolean).join('')}, ${sampler}, deterministic: ${deterministic}`;
}
