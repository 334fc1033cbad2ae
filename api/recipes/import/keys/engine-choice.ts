/**
 * Which engines an imported recipe names. A script of verl runs on GPUs only, and does not say whether the machine of
 * its reader has one. So the person who imports it says so (`--engine torch`); otherwise the recipe keeps petrel's
 * defaults, which run anywhere, unless the script asks for what only torch has.
 */
import type { ValueOf } from './conversions.ts';

export type ImportEngine = 'native' | 'torch';

export interface EngineChoice {
  readonly trainer: ImportEngine;
  /** `rollout.name`. */
  readonly sampler: 'native' | 'hf' | 'vllm';
  /** The model is divided over as many processes as the script has GPUs on a machine. */
  readonly divides: boolean;
  /** Why, and what chooses otherwise. */
  readonly why: string;
}

/** `asked`: the engine of the command line. `unknown`: keys that the script sets to what it does not say. */
export function chooseEngines(
  asked: ImportEngine | undefined,
  valueOf: ValueOf,
  unknown: ReadonlySet<string> = new Set(),
): EngineChoice {
  const sampler = samplerOf(valueOf('rollout.name'));
  if (asked === 'torch')
    return { trainer: 'torch', sampler, divides: true, why: 'asked for; --engine native keeps the native engine' };
  const native = { trainer: 'native', sampler: 'native', divides: false } as const;
  if (asked === 'native') return { ...native, why: 'asked for' };
  if (asksForAdapter(valueOf) || adapterKeys.some((key) => unknown.has(key)))
    return {
      trainer: 'torch',
      sampler,
      divides: false,
      why: 'the script trains an adapter, which only torch does; --engine torch also takes its number of GPUs',
    };
  return { ...native, why: 'the default; --engine torch chooses the engines of GPUs: torch, and vLLM to sample' };
}

/** SGLang and TensorRT-LLM become vLLM, which petrel starts by itself. */
const samplerOf = (name: unknown): 'hf' | 'vllm' => (name === 'hf' ? 'hf' : 'vllm');

const adapterKeys = ['model.lora_rank', 'model.lora.rank', 'model.lora_adapter_path', 'model.lora.adapter_path'];

/** A rank above 0, or the folder of an adapter. */
const asksForAdapter = (valueOf: ValueOf): boolean =>
  adapterKeys
    .map(valueOf)
    .some((value) => (typeof value === 'number' ? value > 0 : typeof value === 'string' && value !== ''));
