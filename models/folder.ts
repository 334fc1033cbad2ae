/** A Hugging Face folder of a model: its config.json is read, and a new folder is written, whole or not at all. */
import { copyFile, readFile, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { InvalidInputError } from '../core/errors.ts';
import type { JsonObject } from './fields.ts';
import { foreignFile } from './foreign-file.ts';
import { assertModelFiles } from './model-files.ts';
import { writeNewFolder } from './new-folder.ts';
import { type Tensors, writeModelFiles } from './safetensors.ts';

export interface SavedModel {
  /** The content of config.json; its dtype is set to the stored one. */
  readonly config: JsonObject;
  readonly tensors: Tensors;
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

/** Copies the files beside the weights. */
export async function copyCompanions(from: string, to: string): Promise<void> {
  const present = new Set(await readdir(from));
  for (const name of companionFiles) if (present.has(name)) await copyFile(join(from, name), join(to, name));
}

function withDtype(config: JsonObject, dtype: string): JsonObject {
  return { ...config, [Object.hasOwn(config, 'dtype') ? 'dtype' : 'torch_dtype']: dtype };
}
