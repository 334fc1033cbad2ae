/** The engines that a worker can run. A new one is a folder beside this file and a line here. */
import type { Engines } from '../../../core/ports/engines.ts';
import { nativeEngines } from './native/index.ts';
import type { MemoryPlan } from './memory-plan.ts';

/** What the engines of a process share. */
export interface EngineShare {
  /** Memory of this machine for models. */
  readonly memory: MemoryPlan;
}

/** Maps the name of an engine in a recipe, `trainer.engine`, to what makes it. */
export const engineRegistry: Readonly<Record<string, (share: EngineShare) => Engines>> = {
  native: ({ memory }) => nativeEngines(memory),
};
