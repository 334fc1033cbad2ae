/** Loads the weights of a Hugging Face folder into the flat buffers of the engine. */
import { InvalidInputError } from '../../core/errors.ts';
import type { ParameterInfo } from '../../core/parameters.ts';
import { type TensorFolder, openSafetensors } from '../../models/safetensors.ts';
import { isTied } from './spec.ts';
import type { DecoderSpec } from './spec.ts';
import { checkUnused } from './unused-tensors.ts';

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
