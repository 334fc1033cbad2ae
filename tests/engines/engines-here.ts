/** The engines that users install, for tests: `npm run test:engines` installs them. */
import type { SamplingEngine, TrainingEngine } from '../../core/ports/engines.ts';
import { petrelHome } from '../../infra/home.ts';
import { readEnvironment } from '../../infra/engines/environment.ts';
import { hfSamplers, torchEngines } from '../../workers/engine/engines/torch/index.ts';
import type { TorchOptions } from '../../workers/engine/engines/torch/index.ts';
import { vllmSamplers } from '../../workers/engine/engines/vllm/index.ts';
import type { VllmOptions } from '../../workers/engine/engines/vllm/index.ts';

export const torchHere = (some: Partial<TorchOptions> = {}): TrainingEngine =>
  torchEngines({ ...optionsHere('torch'), ...some });
export const hfHere = (some: Partial<TorchOptions> = {}): SamplingEngine =>
  hfSamplers({ ...optionsHere('torch'), ...some });
export const vllmHere = (some: Partial<VllmOptions> = {}): SamplingEngine =>
  vllmSamplers({ ...optionsHere('vllm'), ...some });

function optionsHere(engine: 'torch' | 'vllm'): TorchOptions {
  const environment = readEnvironment(petrelHome(), `${engine}-cpu`);
  if (environment === undefined) throw new Error(`${engine} is not installed here: npm run test:engines installs it`);
  return { threads: 2, ...environment };
}
