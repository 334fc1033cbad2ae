/** Random weights for a model that has only a config.json and a tokenizer. */
import { join } from 'node:path';
import { readDecoderSpec } from '../../native/model/config.ts';
import { initialTensors } from '../../native/model/init.ts';
import { readConfigJson, saveHuggingFace } from '../../models/folder.ts';

export interface InitialModel {
  readonly family: string;
  readonly layers: number;
  readonly parameters: number;
}

/**
 * Writes the folder `out`: what lies in `from`, and weights drawn from a normal distribution whose standard deviation
 * is `initializer_range` of the config (0.02 when it has none). Throws InvalidInputError when anything but an empty
 * folder is there.
 */
export async function initModel(from: string, out: string, seed: number): Promise<InitialModel> {
  const json = await readConfigJson(from);
  const config = readDecoderSpec(json, join(from, 'config.json'));
  const std = typeof json['initializer_range'] === 'number' ? json['initializer_range'] : 0.02;
  const tensors = initialTensors(config, seed, std);
  await saveHuggingFace(out, { config: json, tensors, dtype: 'float32', companions: from });
  const parameters = tensors.reduce((sum, tensor) => sum + tensor.data.length, 0);
  return { family: config.family, layers: config.layers.length, parameters };
}
