/** An adapter that somebody else has made: a folder as peft saves it. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { InvalidInputError } from '../../core/errors.ts';
import type { JsonObject } from '../fields.ts';
import { decodeSafetensors, openSafetensors } from '../safetensors.ts';
import type { DecodedSafetensors } from '../safetensors.ts';
import { adapterConfigName, adapterWeightsName, folderHint, layerOf, namesOfLayer, rankOf } from './config.ts';
import { readLoraConfig } from './config.ts';

/** Its config, with another place of its base, and these other settings. */
export async function withBase(folder: string, base: string, more: JsonObject = {}): Promise<Uint8Array> {
  await readLoraConfig(folder);
  const config = JSON.parse(await readFile(join(folder, adapterConfigName), 'utf8')) as JsonObject;
  const changed = { ...config, base_model_name_or_path: base, ...more };
  return new TextEncoder().encode(`${JSON.stringify(changed, null, 2)}\n`);
}

export interface GivenAdapter {
  readonly rank: number;
  readonly layers: number;
  readonly parameters: number;
}

/**
 * Throws InvalidInputError when a tensor of the adapter fits no layer of the model in `base`, or one is missing.
 * `hasHead`: the file may have the head of a reward model, too.
 */
export async function checkAdapter(folder: string, base: string, hasHead = false): Promise<GivenAdapter> {
  const config = await readLoraConfig(folder);
  const path = join(folder, adapterWeightsName);
  const { tensors } = await readTensors(path);
  const refuse = (what: string, hint = 'name the adapter of this model, or the model of this adapter') =>
    new InvalidInputError(`${path}: ${what}`, { where: path, hint });
  const isHead = (name: string) => hasHead && /^base_model\.model\.(?:score|classifier)\./.test(name);
  const own = [...tensors.keys()].filter((name) => !isHead(name));
  const stranger = own.find((name) => layerOf(name) === undefined || layerOf(name) === 'lm_head');
  if (stranger !== undefined)
    throw refuse(`${stranger} is no A or B of a linear layer of the model's blocks`, 'petrel trains no other tensors');
  const layers = new Set(own.map((name) => layerOf(name) as string));
  if (layers.size === 0) throw refuse('there is no tensor of an adapter in it', folderHint);
  const model = await openSafetensors(base);
  try {
    for (const layer of layers) {
      const found = model.tensors.get(`${layer}.weight`)?.shape;
      if (found === undefined) throw refuse(`${base} has no layer ${layer}`);
      const [out = 0, width = 0] = found;
      const rank = rankOf(config, layer);
      const { a, b } = namesOfLayer(layer);
      for (const [name, expected] of [
        [a, [rank, width]],
        [b, [out, rank]],
      ] as const) {
        const shape = tensors.get(name)?.shape;
        if (shape?.join() !== expected.join())
          throw refuse(`${name} must have the shape [${expected.join(', ')}], found ${shown(shape)}`);
      }
    }
    const parameters = Array.from(tensors.values()).reduce((sum, { data }) => sum + data.length, 0);
    return { rank: config.rank, layers: layers.size, parameters };
  } finally {
    await model.close();
  }
}

const shown = (shape: readonly number[] | undefined): string =>
  shape === undefined ? 'no such tensor' : `[${shape.join(', ')}]`;

async function readTensors(path: string): Promise<DecodedSafetensors> {
  const bytes = await readFile(path).catch((cause: unknown) => {
    throw new InvalidInputError(`${path}: it cannot be read`, { where: path, hint: folderHint, cause });
  });
  return decodeSafetensors(bytes, path);
}
