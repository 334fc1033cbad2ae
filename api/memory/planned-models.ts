/** The models whose shapes decide how much memory a recipe's run takes, and the adapter that it trains. */
import type { AdapterWanted } from '../../core/ports/engine-plans.ts';
import { trainsAdapter } from '../../core/recipe/index.ts';
import type { Recipe } from '../../core/recipe/index.ts';
import { readLoraConfig } from '../../models/lora.ts';
import type { RecipeInputs } from '../inputs/recipe-inputs.ts';
import type { PlannedModels } from './processes.ts';

/** Throws as `RecipeInputs.model` and `modelFacts` do. */
export async function plannedModels(inputs: RecipeInputs): Promise<PlannedModels> {
  const teacher = await inputs.teacher();
  return {
    model: await inputs.modelRef(),
    teacher: teacher && { folder: teacher.folder, head: 'tokens' },
    adapter: await adapterOf(inputs.recipe),
  };
}

/** An adapter that is given is taken to be beside every linear layer. */
async function adapterOf(recipe: Recipe): Promise<AdapterWanted | undefined> {
  if (!trainsAdapter(recipe)) return undefined;
  const { lora_adapter_path: given, lora_rank: rank, target_modules: targets } = recipe.model;
  return given === null ? { rank, targets } : { rank: (await readLoraConfig(given)).rank, targets: 'all-linear' };
}
