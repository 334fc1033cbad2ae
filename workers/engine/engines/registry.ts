/** The engines that a worker can run. A new one is a folder beside this file and a line here. */
import type { Engines } from '../../../core/ports/engines.ts';
import { httpName } from '../../../core/sampling-server.ts';
import { chosenEnvironment } from '../../../infra/engines/environment.ts';
import { enginePatience } from '../../../infra/engines/patience.ts';
import { petrelHome } from '../../../infra/home.ts';
import { httpSamplers } from './http/index.ts';
import { nativeEngines } from './native/index.ts';
import type { MemoryPlan } from './memory-plan.ts';
import { hfSamplers, torchEngines } from './torch/index.ts';
import type { TorchOptions } from './torch/index.ts';
import { vllmSamplers } from './vllm/index.ts';

/** What the engines of a process share. */
export interface EngineShare {
  /** Memory of this machine for models. */
  readonly memory: MemoryPlan;
  readonly threads: number;
  /** Called while work advances, or waits for a server that may yet answer. */
  readonly tick: () => void;
}

/**
 * Maps the name of an engine in a recipe, `trainer.engine` or `rollout.name`, to what makes it, which gives nothing
 * where it is not installed. `http` asks the servers at `rollout.url`.
 */
export const engineRegistry: Readonly<Record<string, (share: EngineShare) => Engines | undefined>> = {
  native: ({ memory }) => nativeEngines(memory),
  torch: (share) => installed('torch', torchEngines, share),
  hf: (share) => installed('hf', hfSamplers, share),
  vllm: (share) => installed('vllm', vllmSamplers, share),
  [httpName]: ({ tick }) => httpSamplers(tick),
};

/** On the GPU, if its environment is installed for it. */
function installed(
  name: 'torch' | 'hf' | 'vllm',
  make: (options: TorchOptions) => Engines,
  { threads }: EngineShare,
): Engines | undefined {
  const environment = chosenEnvironment(petrelHome(), name);
  const hungAfterSeconds = enginePatience();
  return (
    environment &&
    make({
      ...environment,
      threads,
      onLine: (line) => console.error(line),
      ...(hungAfterSeconds !== undefined && { hungAfterSeconds }),
    })
  );
}
