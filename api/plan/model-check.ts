/** The model folder: its config is read and every tensor's shape is compared, without loading one. */
import { showBytes, showCount } from '../../core/quantities.ts';
import { isTied } from '../../core/decoder-spec.ts';
import { openSafetensors } from '../../models/safetensors.ts';
import { checkTensors } from '../../models/weights.ts';
import type { Check } from './checks.ts';

export const modelCheck: Check = {
  name: 'model',
  look: async (inputs) => {
    const { folder, missingBytes = 0 } = await inputs.model();
    const spec = await inputs.decoder();
    const parameters = spec.tensors.reduce((sum, { shape }) => sum + sizeOf(shape), 0);
    const { path } = inputs.recipe.model;
    const detail = `${path}: ${spec.family}, ${spec.layers.length} layers, ${showCount(parameters)} parameters`;
    if (missingBytes > 0)
      return { status: 'later', detail: `${detail}; its weights (${showBytes(missingBytes)}) are fetched by the run` };
    const source = await openSafetensors(folder);
    try {
      checkTensors(source, spec.tensors, isTied(spec));
    } finally {
      await source.close();
    }
    return { detail };
  },
};

export const tokenizerCheck: Check = {
  name: 'tokenizer',
  look: async (inputs) => {
    await inputs.tokenizer();
    return undefined;
  },
};

const sizeOf = (shape: readonly number[]): number => shape.reduce((product, size) => product * size, 1);
