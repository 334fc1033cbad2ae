/** The low-rank adapter of a recipe: which layers get one, and how many parameters it has. */
import { showCount } from '../../core/quantities.ts';
import { trainsAdapter } from '../../core/recipe/index.ts';
import { adapterLayers, checkAdapter } from '../../models/lora.ts';
import { adapterSettings } from '../inputs/adapter.ts';
import type { Check } from './checks.ts';

export const adapterCheck: Check = {
  name: 'adapter',
  look: async (inputs) => {
    const { recipe } = inputs;
    if (!trainsAdapter(recipe)) return undefined;
    const { folder, missingBytes = 0 } = await inputs.model();
    if (missingBytes > 0) return { status: 'later', detail: 'the layers of the model are known with its weights' };
    const { lora_adapter_path: given } = recipe.model;
    if (given !== null) {
      const { layers, parameters, rank } = await checkAdapter(given, folder, recipe.kind === 'rm');
      return { detail: `${given}: rank ${rank}, ${layers} layers, ${showCount(parameters)} parameters are trained` };
    }
    const { rank, targets } = adapterSettings(recipe);
    const layers = await adapterLayers(folder, targets);
    const parameters = layers.reduce((sum, layer) => sum + rank * (layer.in + layer.out), 0);
    return { detail: `new, rank ${rank}, ${layers.length} layers, ${showCount(parameters)} parameters are trained` };
  },
};
