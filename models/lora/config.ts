/** A low-rank adapter's adapter_config.json, as peft writes it: weight + scale · B · A for each of its layers. */
import { readFile, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { InvalidInputError } from '../../core/errors.ts';
import { Fields, isObject } from '../fields.ts';

export const adapterConfigName = 'adapter_config.json';
export const adapterWeightsName = 'adapter_model.safetensors';

export interface LoraConfig {
  /** Folder of the base, relative to the adapter's, or a name on the hub. */
  readonly base: string;
  readonly rank: number;
  readonly alpha: number;
  /** The scale is alpha / √rank, not alpha / rank. */
  readonly rankStabilised: boolean;
  /** Ranks of layers that have another one, by the end of their path or a regular expression for it. */
  readonly ranks: Readonly<Record<string, number>>;
  readonly alphas: Readonly<Record<string, number>>;
}

/** Names of a layer's tensors in the adapter's file; its path is that of its weight without `.weight`. */
export const namesOfLayer = (path: string): { readonly a: string; readonly b: string } => ({
  a: `base_model.model.${path}.lora_A.weight`,
  b: `base_model.model.${path}.lora_B.weight`,
});

/** Path of the layer to which a tensor of the adapter's file belongs. */
export const layerOf = (tensor: string): string | undefined =>
  /^base_model\.model\.(.+)\.lora_[AB]\.weight$/.exec(tensor)?.[1];

/** Is it an adapter's folder? */
export const isAdapterFolder = async (folder: string): Promise<boolean> =>
  (await readdir(folder)).includes(adapterConfigName);

export async function readLoraConfig(folder: string): Promise<LoraConfig> {
  const path = join(folder, adapterConfigName);
  let json: unknown;
  try {
    json = JSON.parse(await readFile(path, 'utf8'));
  } catch (cause) {
    const why = cause instanceof SyntaxError ? 'it is not valid JSON' : 'it cannot be read';
    throw new InvalidInputError(`${path}: ${why}`, { where: path, hint: folderHint, cause });
  }
  return parseLoraConfig(json, path);
}

/** What a key that names an adapter's folder expects. */
export const folderHint = `name a local folder as peft saves it, with ${adapterConfigName} and ${adapterWeightsName}`;

/** Settings of peft that add other tensors than A and B, train others, or compute otherwise. */
const refused = [
  'use_dora',
  'modules_to_save',
  'trainable_token_indices',
  'target_parameters',
  'layer_replication',
  'lora_bias',
  'alora_invocation_tokens',
  'use_qalora',
  'use_bdlora',
  'arrow_config',
];
/** Ways to begin that leave the weights of the base as they are. Others, such as pissa, change them. */
const beginnings: readonly unknown[] = [undefined, null, true, false, 'gaussian', 'orthogonal', 'eva'];

function parseLoraConfig(json: unknown, path: string): LoraConfig {
  const fields = new Fields(json, path);
  if (fields.get('peft_type') !== 'LORA') throw fields.refuse('peft_type', 'LORA');
  for (const name of refused) {
    const value = fields.get(name);
    if (value && !(Array.isArray(value) && value.length === 0))
      throw fields.refuse(name, 'off: petrel does not have it');
  }
  if (fields.text('bias', 'none') !== 'none') throw fields.refuse('bias', 'none');
  if (!beginnings.includes(fields.get('init_lora_weights')))
    throw fields.refuse('init_lora_weights', 'one that leaves the base as it is (true, gaussian, orthogonal, eva)');
  const numbers = (name: string): Record<string, number> => {
    const value = fields.get(name) ?? {};
    if (!isObject(value) || Object.values(value).some((one) => typeof one !== 'number'))
      throw fields.refuse(name, 'an object of numbers');
    return value as Record<string, number>;
  };
  return {
    base: fields.text('base_model_name_or_path', ''),
    rank: fields.positive('r'),
    alpha: fields.positive('lora_alpha'),
    rankStabilised: fields.flag('use_rslora', false),
    ranks: numbers('rank_pattern'),
    alphas: numbers('alpha_pattern'),
  };
}

export const rankOf = ({ rank, ranks }: LoraConfig, layer: string): number => ofLayer(ranks, layer) ?? rank;

/** The factor of B · A in a layer. */
export function scaleOf(config: LoraConfig, layer: string): number {
  const alpha = ofLayer(config.alphas, layer) ?? config.alpha;
  const rank = rankOf(config, layer);
  return alpha / (config.rankStabilised ? Math.sqrt(rank) : rank);
}

/** A key matches a whole path, or its end after a dot, as in peft. */
const ofLayer = (patterns: Readonly<Record<string, number>>, layer: string): number | undefined =>
  Object.entries(patterns).find(([key]) => new RegExp(`^(?:.*\\.)?(?:${key})$`).test(layer))?.[1];
