/**
 * A new adapter of a model, as peft makes one: A uniform in ±1 / √in, B zero, so that the model with it is its base. A
 * follows from the run's seed.
 */
import { InvalidInputError } from '../../core/errors.ts';
import { nearest } from '../../core/nearest.ts';
import { philox4x32 } from '../../core/rl/philox.ts';
import { encodeSafetensors, openSafetensors } from '../safetensors.ts';
import type { MemoryTensor } from '../safetensors.ts';
import { adapterConfigName, adapterWeightsName, namesOfLayer } from './config.ts';

export interface AdapterSettings {
  readonly rank: number;
  readonly alpha: number;
  /** `all-linear`, a regular expression for whole paths, or names: whole paths, or their ends after a dot. */
  readonly targets: string | readonly string[];
  readonly seed: number;
  readonly task: 'CAUSAL_LM' | 'SEQ_CLS';
}

/** A linear layer of a model: its path, and the shape [out, in] of its weight. */
export interface LinearLayer {
  readonly path: string;
  readonly out: number;
  readonly in: number;
}

/** The files of an adapter for the model in `folder`, by name. `base`: where they will find that folder. */
export async function createAdapter(
  folder: string,
  base: string,
  settings: AdapterSettings,
): Promise<Readonly<Record<string, Uint8Array>>> {
  const layers = await adapterLayers(folder, settings.targets);
  const tensors: Record<string, MemoryTensor> = {};
  for (const [index, layer] of layers.entries()) {
    const { a, b } = namesOfLayer(layer.path);
    const { rank, seed } = settings;
    tensors[a] = { dtype: 'F32', shape: [rank, layer.in], data: uniform(rank * layer.in, layer.in, index, seed) };
    tensors[b] = { dtype: 'F32', shape: [layer.out, rank], data: new Float32Array(layer.out * rank) };
  }
  const config = adapterConfig(base, settings, layers);
  return {
    [adapterConfigName]: new TextEncoder().encode(`${JSON.stringify(config, null, 2)}\n`),
    [adapterWeightsName]: encodeSafetensors(tensors, { format: 'pt' }),
  };
}

/** The layers of the model in `folder` that get an adapter. Throws InvalidInputError when there are none. */
export async function adapterLayers(folder: string, targets: AdapterSettings['targets']): Promise<LinearLayer[]> {
  const layers = matchingLayers(await linearLayers(folder), targets, folder);
  if (layers.length > 0) return layers;
  throw new InvalidInputError(`model.target_modules: no layer of ${folder} is named`, {
    where: 'model.target_modules',
    hint: 'set model.target_modules=all-linear, or name the layers of this model',
  });
}

const adapterConfig = (base: string, { rank, alpha, task }: AdapterSettings, layers: readonly LinearLayer[]) => ({
  base_model_name_or_path: base,
  bias: 'none',
  inference_mode: true,
  lora_alpha: alpha,
  lora_dropout: 0,
  peft_type: 'LORA',
  r: rank,
  target_modules: layers.map(({ path }) => path),
  task_type: task,
});

/**
 * The linear layers of a model's blocks. A mixture's experts are no layers of their own in transformers, and its router
 * is none either.
 */
async function linearLayers(folder: string): Promise<LinearLayer[]> {
  const files = await openSafetensors(folder);
  try {
    return Array.from(files.tensors.values())
      .filter(({ name, shape }) => shape.length === 2 && /\.\d+\..*\.weight$/.test(name))
      .filter(({ name }) => !/\.experts\.|\.(?:gate|router)\.weight$/.test(name))
      .map(({ name, shape: [out = 0, width = 0] }) => ({ path: name.slice(0, -'.weight'.length), out, in: width }))
      .sort((a, b) => (a.path < b.path ? -1 : 1));
  } finally {
    await files.close();
  }
}

/** Finds the linear layers that `targets` names. Throws InvalidInputError for a name that none has. */
export function matchingLayers(
  layers: readonly LinearLayer[],
  targets: AdapterSettings['targets'],
  folder: string,
): LinearLayer[] {
  if (targets === 'all-linear') return [...layers];
  const where = 'model.target_modules';
  const names = [...new Set(layers.map(({ path }) => path.split('.').at(-1) ?? path))].sort();
  const none = (what: string) =>
    new InvalidInputError(
      `${where}: no linear layer of ${folder} is called ${what}; they are called ${names.join(', ')}`,
      {
        where,
        hint: `set ${where}=${nearest(what, names) ?? 'all-linear'}`,
      },
    );
  if (typeof targets === 'string') {
    const pattern = patternOf(targets, where);
    const found = layers.filter(({ path }) => pattern.test(path) || endsWith(path, targets));
    if (found.length === 0) throw none(targets);
    return found;
  }
  for (const name of targets) if (!layers.some(({ path }) => endsWith(path, name))) throw none(name);
  return layers.filter(({ path }) => targets.some((name) => endsWith(path, name)));
}

const endsWith = (path: string, name: string): boolean => path === name || path.endsWith(`.${name}`);

function patternOf(text: string, where: string): RegExp {
  try {
    return new RegExp(`^(?:${text})$`);
  } catch (cause) {
    throw new InvalidInputError(`${where}: ${text} is no regular expression`, { where, cause });
  }
}

/** Sets the draws of an adapter apart from others with the run's seed. */
const adapterStream = 0x4c6f5241;

/** Values of ±1 / √width: 24 random bits each. */
function uniform(count: number, width: number, layer: number, seed: number): Float32Array {
  const values = new Float32Array(count);
  const bound = 1 / Math.sqrt(width);
  const key = [seed >>> 0, Math.floor(seed / 2 ** 32) >>> 0] as const;
  for (let i = 0; i < count; i += 4) {
    const words = philox4x32([i / 4, layer, 0, adapterStream], key);
    for (let k = 0; k < 4 && i + k < count; k++) values[i + k] = (((words[k] as number) >>> 8) / 2 ** 23 - 1) * bound;
  }
  return values;
}
