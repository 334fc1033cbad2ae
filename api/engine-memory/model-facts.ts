/** What is known of a model for engines that run any decoder of transformers: what its config.json says. */
import type { ModelFacts } from '../../core/ports/engine-plans.ts';
import type { ModelRef } from '../../core/ports/engines.ts';
import { InvalidInputError } from '../../core/errors.ts';
import { generalFacts, requireOneScore } from '../../models/config.ts';
import { parametersOf, readDecoderShape } from '../../models/decoder-shape.ts';
import type { DecoderShape } from '../../models/decoder-shape.ts';
import { readConfigJson } from '../../models/folder.ts';
import { adapterConfigName, isAdapterFolder } from '../../models/lora.ts';

/** Throws InvalidInputError. `parameters` is absent for a decoder whose shapes its config does not give. */
export async function readModelFacts(model: ModelRef): Promise<ModelFacts> {
  const { folder, head } = model;
  await refuseAdapter(folder);
  const [config, where] = [await readConfigJson(folder), `${folder}/config.json`];
  if (head === 'scores') requireOneScore(config, where);
  const facts = generalFacts(config, where);
  const shape = await shapeOf(model);
  return shape === undefined ? facts : { ...facts, parameters: parametersOf(shape) };
}

/** Undefined for a decoder whose config lacks the keys of those that transformers has most of. */
export async function shapeOf({ folder, head }: ModelRef): Promise<DecoderShape | undefined> {
  const config = await readConfigJson(folder);
  try {
    return readDecoderShape(config, head, `${folder}/config.json`);
  } catch (error) {
    if (error instanceof InvalidInputError) return undefined;
    throw error;
  }
}

/** Throws InvalidInputError for a whole model that has an adapter beside its weights: which is meant? */
async function refuseAdapter(folder: string): Promise<void> {
  if (!(await isAdapterFolder(folder))) return;
  throw new InvalidInputError(`${folder}: there is an ${adapterConfigName} beside the weights`, {
    where: folder,
    hint: 'move the adapter to a folder of its own, and set model.lora_adapter_path to that folder to go on with it',
  });
}
