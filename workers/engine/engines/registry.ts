/** The engines that a worker can run. A new one is a folder beside this file and a line here. */
import type { Engines } from '../../../core/ports/engines.ts';
import { readEnvironment } from '../../../infra/engines/environment.ts';
import { petrelHome } from '../../../infra/home.ts';
import { nativeEngines } from './native/index.ts';
import type { MemoryPlan } from './memory-plan.ts';
import { hfSamplers, torchEngines } from './torch/index.ts';
import type { TorchOptions } from './torch/index.ts';

/** What the engines of a process share. */
export interface EngineShare {
  /** Memory of this machine for models. */
  readonly memory: MemoryPlan;
  readonly threads: number;
}

/**
 * Maps the name of an engine in a recipe, `trainer.engine` or `rollout.name`, to what makes it, which gives nothing
 * where it is not installed.
 */
export const engineRegistry: Readonly<Record<string, (share: EngineShare) => Engines | undefined>> = {
  native: ({ memory }) => nativeEngines(memory),
  torch: (share) => withTorch(torchEngines, share),
  hf: (share) => withTorch(hfSamplers, share),
};

/** On the GPU, if torch is installed for it. */
function withTorch(make: (options: TorchOptions) => Engines, { threads }: EngineShare): Engines | undefined {
  const environment = readEnvironment(petrelHome(), 'torch-cuda') ?? readEnvironment(petrelHome(), 'torch-cpu');
  return environment && make({ ...environment, threads, onLine: (line) => console.error(line) });
}
