/** Converts weights between a Hugging Face folder and an engine's flat buffers, both ways. */
import { copyFile, readFile, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isTied } from '../core/decoder-spec.ts';
import type { DecoderSpec } from '../core/decoder-spec.ts';
import { InvalidInputError } from '../core/errors.ts';
import type { ParameterInfo } from '../core/ports/policy.ts';
import type { JsonObject } from './fields.ts';
import { foreignFile } from './foreign-file.ts';
import { assertModelFiles } from './model-files.ts';
import { writeNewFolder } from './new-folder.ts';
import { checkUnused } from './unused-tensors.ts';
import { type FloatTensor, type TensorFolder, openSafetensors, writeModelFiles } from './safetensors.ts';

/** The part of a model in memory that loading needs. Each weight has a place in one flat array. */
export interface WeightsTarget {
  readonly spec: DecoderSpec;
  readonly parameters: readonly ParameterInfo[];
  write(part: 'weights', values: Float32Array, start: number): void;
  weightsChanged(): void;
}

/**
 * Replaces the weights by those of a folder's safetensors. Names, shapes and dtypes are checked before the first weight
 * is written. Throws InvalidInputError, also for a weight that is not finite. `onBytes` is called after every few MiB;
 * `newHead` leaves out the folder's head, and leaves the model's own as it is.
 */
export async function loadWeights(
  folder: string,
  trainer: WeightsTarget,
  { onBytes, newHead = false }: { readonly onBytes?: () => void; readonly newHead?: boolean | undefined } = {},
): Promise<void> {
  const parameters = newHead ? withoutHead(trainer.spec, trainer.parameters) : trainer.parameters;
  const source = await openSafetensors(folder);
  try {
    checkTensors(source, parameters, newHead || isTied(trainer.spec));
    await checkUnused(source, trainer.spec, { newHead, onBytes });
    for (const { name, offset } of parameters) {
      let at = 0;
      for await (const values of source.values(name)) {
        refuseNonFinite(folder, name, values, at);
        trainer.write('weights', values, offset + at);
        at += values.length;
        onBytes?.();
      }
    }
  } finally {
    await source.close();
  }
  trainer.weightsChanged();
}

/** The tensors but for those of the head. */
export function withoutHead<T extends { readonly name: string }>(
  { head }: Pick<DecoderSpec, 'head'>,
  tensors: readonly T[],
): readonly T[] {
  const ofHead = new Set(head.projection.flatMap(({ weight, bias }) => [weight, bias]));
  return tensors.filter(({ name }) => !ofHead.has(name));
}

/** A product with 0 is 0 for every finite number, and NaN for the others: one sum shows whether there is one. */
function refuseNonFinite(folder: string, name: string, values: Float32Array, start: number): void {
  let zero = 0;
  for (const value of values) zero += value * 0;
  if (zero === 0) return;
  const index = values.findIndex((value) => !Number.isFinite(value));
  throw new InvalidInputError(
    `${folder}: tensor ${name} must hold finite numbers, found ${values[index]} at element ${start + index}`,
    { where: folder, hint: 'The files are damaged, or the training that wrote them failed: use another checkpoint' },
  );
}

/** Throws InvalidInputError with the tensor, the expected and the found value. */
export function checkTensors(
  source: TensorFolder,
  parameters: readonly Pick<ParameterInfo, 'name' | 'shape'>[],
  unusedHead: boolean,
): void {
  const refuse = (message: string, hint?: string): InvalidInputError =>
    new InvalidInputError(`${source.folder}: ${message}`, {
      where: source.folder,
      ...(hint !== undefined && { hint }),
    });
  const missing = parameters.filter(({ name }) => !source.tensors.has(name));
  const first = missing[0];
  if (first !== undefined) {
    const more =
      missing.length > 1
        ? ` (and ${missing.length - 1} more: ${list(missing.slice(1).map((tensor) => tensor.name))})`
        : '';
    throw refuse(
      `tensor ${first.name} is missing: expected shape [${first.shape.join(', ')}], found none${more}`,
      prefixHint(source, first.name),
    );
  }
  for (const { name, shape } of parameters) {
    const found = source.tensors.get(name);
    if (found === undefined) continue;
    if (found.shape.join() !== shape.join())
      throw refuse(`tensor ${name}: expected shape [${shape.join(', ')}], found [${found.shape.join(', ')}]`);
    if (found.dtype !== 'F32' && found.dtype !== 'BF16' && found.dtype !== 'F16') {
      throw refuse(`tensor ${name}: expected dtype F32, BF16 or F16, found ${found.dtype}`);
    }
  }
  const known = new Set(parameters.map(({ name }) => name));
  const extra = [...source.tensors.keys()].filter((name) => !known.has(name) && !isHarmless(name, unusedHead));
  if (extra.length > 0)
    throw refuse(`${extra.length} tensors belong to no parameter of this architecture: ${list(extra)}`);
}

/** Wrappers of a model leave their name before every tensor's: `module.`, `_orig_mod.`, `language_model.`. */
function prefixHint(source: TensorFolder, name: string): string | undefined {
  const bare = name.replace(/^model\./, '');
  const found = [...source.tensors.keys()].find((stored) => stored.endsWith(`.${name}`) || stored === bare);
  if (found === undefined) return undefined;
  if (found === bare) return `the names lack "model.": save the whole model, not its inner one, as in transformers`;
  return `the names begin with "${found.slice(0, -name.length)}": save the inner model, whose names begin with "model."`;
}

/** Tensors that a model does not read; unused-tensors.ts compares what they hold. */
function isHarmless(name: string, unusedHead: boolean): boolean {
  return name.endsWith('rotary_emb.inv_freq') || (unusedHead && name === 'lm_head.weight');
}

function list(names: readonly string[]): string {
  return names.length <= 8 ? names.join(', ') : `${names.slice(0, 8).join(', ')}, …`;
}

export interface SavedModel {
  /** The content of config.json; its dtype is set to the stored one. */
  readonly config: JsonObject;
  readonly tensors: readonly FloatTensor[];
  readonly dtype: 'float32' | 'bfloat16';
  /** Source of generation_config.json, tokenizer and template files, if they exist. */
  readonly companions?: string;
  readonly maxShardBytes?: number;
}

/** Files beside the weights that make a Hugging Face folder complete. */
export const companionFiles: readonly string[] = [
  'generation_config.json',
  'tokenizer.json',
  'tokenizer_config.json',
  'special_tokens_map.json',
  'added_tokens.json',
  'vocab.json',
  'merges.txt',
  'vocab.txt',
  'tokenizer.model',
  'chat_template.jinja',
  'chat_template.json',
];

/**
 * Writes a folder that transformers can load. It appears under its name only when complete. Throws InvalidInputError
 * when anything but an empty folder is at that path, before or after the writing; existing files are not touched.
 */
export async function saveHuggingFace(folder: string, model: SavedModel): Promise<void> {
  await writeNewFolder(folder, async (partial) => {
    const dtype = model.dtype === 'bfloat16' ? 'BF16' : 'F32';
    await writeModelFiles(partial, model.tensors, {
      dtype,
      ...(model.maxShardBytes === undefined ? {} : { maxShardBytes: model.maxShardBytes }),
    });
    await writeFile(join(partial, 'config.json'), `${JSON.stringify(withDtype(model.config, model.dtype), null, 2)}\n`);
    if (model.companions !== undefined) await copyCompanions(model.companions, partial);
  });
}

/** Reads a folder's config.json. */
export async function readConfigJson(folder: string): Promise<JsonObject> {
  const path = join(folder, 'config.json');
  await assertModelFiles(folder);
  try {
    return JSON.parse(await readFile(path, 'utf8')) as JsonObject;
  } catch (cause) {
    const absent = (cause as NodeJS.ErrnoException).code === 'ENOENT';
    const foreign = absent ? undefined : await foreignFile(path, "a model's config.json");
    if (foreign !== undefined) throw foreign;
    throw new InvalidInputError(
      `${path}: ${absent ? 'there is no config.json: not a Hugging Face model folder' : 'not valid JSON'}`,
      { where: path, cause },
    );
  }
}

async function copyCompanions(from: string, to: string): Promise<void> {
  const present = new Set(await readdir(from));
  for (const name of companionFiles) if (present.has(name)) await copyFile(join(from, name), join(to, name));
}

function withDtype(config: JsonObject, dtype: string): JsonObject {
  return { ...config, [Object.hasOwn(config, 'dtype') ? 'dtype' : 'torch_dtype']: dtype };
}
