/** Selects the files of a hub repository that a model needs. */
import { InvalidInputError } from '../../core/errors.ts';
import { companionFiles } from '../folder.ts';

/** A file of the repository, with the data to verify it. */
export interface HubFile {
  readonly path: string;
  readonly size: number;
  /** SHA-256 of a large file, git object id of a small one. */
  readonly digest: { readonly type: 'sha256' | 'git'; readonly hex: string } | undefined;
}

const index = 'model.safetensors.index.json';
const shard = /^model-\d+-of-\d+\.safetensors$/;

/** config, tokenizer, template and safetensors weights; no other weights, no subfolders. Throws when there are none. */
export function chooseFiles(files: readonly HubFile[], name: string): HubFile[] {
  const names = new Set(files.map((file) => file.path));
  const wanted = new Set<string>(['config.json', ...companionFiles]);
  if (names.has('model.safetensors')) wanted.add('model.safetensors');
  else if (names.has(index)) for (const file of names) if (file === index || shard.test(file)) wanted.add(file);
  const chosen = files.filter((file) => wanted.has(file.path));
  if (!names.has('config.json'))
    throw new InvalidInputError(`${name}: the repository has no config.json; it is not a transformers model`);
  if (!chosen.some((file) => file.path.endsWith('.safetensors'))) {
    const others = [...names].filter((file) => /\.(safetensors|bin|pt|pth|gguf|onnx)$/.test(file));
    throw new InvalidInputError(
      `${name}: expected model.safetensors or ${index}, found ${others.join(', ') || 'no weights'}`,
      {
        hint: 'Choose a model that is stored as safetensors.',
      },
    );
  }
  return chosen;
}
