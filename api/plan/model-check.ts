/** The model folder: its config is read and every tensor's shape is compared, without loading one. */
import { samplesResponses } from '../../core/run-kinds.ts';
import { showBytes, showCount } from '../../core/quantities.ts';
import { isTied } from '../../core/decoder-spec.ts';
import { batchArithmetic } from '../../core/recipe/index.ts';
import { headOfConfig } from '../../models/config.ts';
import { openSafetensors } from '../../models/safetensors.ts';
import { checkTensors, readConfigJson, withoutHead } from '../../models/weights.ts';
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
      const newHead = headOfConfig(await readConfigJson(folder)) !== spec.head.kind;
      checkTensors(source, newHead ? withoutHead(spec, spec.tensors) : spec.tensors, newHead || isTied(spec));
    } finally {
      await source.close();
    }
    return { detail };
  },
};

/** Warns of lengths beyond the positions that a model was trained with: its text is likely to be nonsense there. */
export const lengthsCheck: Check = {
  name: 'lengths',
  look: async (inputs) => {
    const { maxPositions } = await inputs.decoder();
    const { longestSequence } = batchArithmetic(inputs.recipe);
    if (longestSequence <= maxPositions) return undefined;
    const keys = samplesResponses(inputs.recipe.kind)
      ? 'data.max_prompt_length and data.max_response_length'
      : 'data.max_length';
    return {
      status: 'warning',
      detail: `a sequence may have ${longestSequence} tokens, and the model was made for ${maxPositions}: lower ${keys}`,
    };
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
