/** The torch engine for tests: `npm run test:engines` installs it. */
import type { SamplingEngine, TrainingEngine } from '../../core/ports/engines.ts';
import { petrelHome } from '../../infra/home.ts';
import { readEnvironment } from '../../infra/engines/environment.ts';
import { hfSamplers, torchEngines } from '../../workers/engine/engines/torch/index.ts';
import type { TorchOptions } from '../../workers/engine/engines/torch/index.ts';

export const torchHere = (some: Partial<TorchOptions> = {}): TrainingEngine => torchEngines(optionsHere(some));
export const hfHere = (some: Partial<TorchOptions> = {}): SamplingEngine => hfSamplers(optionsHere(some));

function optionsHere(some: Partial<TorchOptions>): TorchOptions {
  const environment = readEnvironment(petrelHome(), 'torch-cpu');
  if (environment === undefined) throw new Error('torch is not installed here: npm run test:engines installs it');
  return { threads: 2, ...environment, ...some };
}
