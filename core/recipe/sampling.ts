/** What samples the responses of a recipe's run, and how. */
import { httpName, samplingApis } from '../sampling-server.ts';
import type { SamplingServer } from '../sampling-server.ts';
import type { SamplingSettings } from '../sampling-settings.ts';
import type { Recipe } from './schema.ts';

/** What responses are for: as in rollout jobs. */
export type SamplingPurpose = 'train' | 'baseline' | 'validate';

export function samplingSettings(recipe: Recipe, purpose: SamplingPurpose): SamplingSettings {
  const { rollout } = recipe;
  const own = purpose === 'validate' ? rollout.val_kwargs : rollout;
  return {
    temperature: own.do_sample && purpose !== 'baseline' ? own.temperature : 0,
    topK: Math.max(0, own.top_k),
    topP: own.top_p,
    minP: purpose === 'validate' ? 0 : rollout.min_p,
    repetitionPenalty: rollout.repetition_penalty,
  };
}

/** Name of the engine that samples: the one that asks servers, where the recipe has one. */
export const samplerEngine = ({ rollout }: Pick<Recipe, 'rollout'>): string =>
  rollout.url === null ? rollout.name : httpName;

/** The server that samples; undefined: the workers do. */
export function samplingServer({ rollout }: Pick<Recipe, 'rollout'>): SamplingServer | undefined {
  const { name, url, api_key: apiKey, weights_dir: weightsFolder, timeout } = rollout;
  const api = samplingApis.find((one) => one === name);
  if (url === null || api === undefined) return undefined;
  return {
    ...{ api, url },
    ...(apiKey !== null && { apiKey }),
    ...(weightsFolder !== null && { weightsFolder }),
    timeoutMs: Math.round(timeout * 1000),
  };
}
