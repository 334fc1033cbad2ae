/**
 * The memory of this machine, on which runs are trained: a trainer whose weights, gradients and moments alone are more
 * is refused before anything is loaded. What depends on lengths is only estimated, so `plan` warns of that. Where the
 * trainer computes on cards, they hold these, and nothing is refused here; nor where trainers are on other machines.
 */
import { PetrelError, TerminalError } from '../../core/errors.ts';
import { ownMemory } from '../../core/ports/engine-plans.ts';
import { showBytes } from '../../core/quantities.ts';
import type { RecipeInputs } from '../inputs/recipe-inputs.ts';
import type { MachineMemory } from '../memory/processes.ts';
import { plannedModels } from '../memory/planned-models.ts';
import { bytesOfModels, memoryOf } from '../memory/processes.ts';
import { thisMachine } from '../memory/this-machine.ts';
import type { Check } from './checks.ts';

export const memoryCheck: Check = {
  name: 'memory',
  look: async (inputs) => {
    const { pools, needs } = inputs.recipe.fleet;
    const here = Object.entries(pools).filter(([, { roles }]) => roles.includes('trainer'));
    if (!here.some(([pool]) => needs.trainer?.pools?.includes(pool) !== false)) return undefined;
    const machine = thisMachine(inputs.ports.home);
    // What cannot be read is refused by its own check.
    const needed = await bytesOfTrainer(inputs, machine).catch((error: unknown) => {
      if (error instanceof PetrelError) return 0;
      throw error;
    });
    if (needed <= machine.bytes) return undefined;
    throw new TerminalError(
      'TooLittleMemory',
      `the models that the run trains take ${showBytes(needed)}, this machine has ${showBytes(machine.bytes)}`,
      {
        where: 'model.path',
        hint: 'a smaller model; petrel plan <recipe> --machine 8xH100 says what another machine would hold',
      },
    );
  },
};

/** Bytes that the trainer holds whatever it computes; 0 for an engine that does not plan. */
async function bytesOfTrainer(inputs: RecipeInputs, machine: MachineMemory): Promise<number> {
  const { parameters } = await inputs.modelFacts();
  if (parameters === undefined) return 0;
  const processes = (await memoryOf(inputs.recipe, await plannedModels(inputs), machine)) ?? [];
  return bytesOfModels(processes.filter(({ role }) => role === 'trainer')).get(ownMemory) ?? 0;
}
