/**
 * Tensors of a checkpoint that a model does not read. They may only repeat what it has: a stored head that equals the
 * embedding of a tied model, and frequencies of rope that follow from config.json. With other values the checkpoint was
 * made for another model than its config.json says.
 */
import type { DecoderSpec } from './spec.ts';
import { isTied } from './spec.ts';
import { InvalidInputError } from '../../core/errors.ts';
import type { TensorFolder } from '../../models/safetensors.ts';

const HEAD = 'lm_head.weight';

/**
 * Throws InvalidInputError with what to type when such a tensor holds other values. `newHead`: the model gets another
 * head, so the stored one is left out on purpose. `onBytes` is called after every few MiB.
 */
export async function checkUnused(
  source: TensorFolder,
  spec: DecoderSpec,
  { newHead = false, onBytes }: { readonly newHead?: boolean; readonly onBytes?: (() => void) | undefined } = {},
): Promise<void> {
  if (!newHead && isTied(spec) && source.tensors.has(HEAD)) await checkTiedHead(source, spec.embedding.table, onBytes);
  for (const name of source.tensors.keys())
    if (name.endsWith('rotary_emb.inv_freq')) await checkFrequencies(source, name, spec);
}

async function checkTiedHead(source: TensorFolder, table: string, onBytes: (() => void) | undefined): Promise<void> {
  const [head, embedding] = [source.tensors.get(HEAD), source.tensors.get(table)];
  if (head?.shape.join() !== embedding?.shape.join())
    throw refused(
      source,
      `tensor ${HEAD} has the shape [${head?.shape.join(', ')}] and ${table} [${embedding?.shape.join(', ')}]`,
      untie,
    );
  const at = await firstDifference(source.values(HEAD), source.values(table), onBytes);
  if (at === undefined) return;
  throw refused(
    source,
    `tie_word_embeddings is true, but ${HEAD} differs from ${table}, first at element ${at}; one of the two would be lost`,
    untie,
  );
}

const untie =
  'set "tie_word_embeddings": false in config.json to use the stored head; or delete lm_head.weight from the file to use the embedding';

/** The first element that differs, by value, whatever the two are stored as. A NaN equals a NaN. */
async function firstDifference(
  left: AsyncGenerator<Float32Array>,
  right: AsyncGenerator<Float32Array>,
  onBytes: (() => void) | undefined,
): Promise<number | undefined> {
  let [a, b]: [Float32Array, Float32Array] = [new Float32Array(), new Float32Array()];
  let start = 0;
  try {
    for (;;) {
      if (a.length === 0) a = ((await left.next()).value as Float32Array | undefined) ?? a;
      if (b.length === 0) b = ((await right.next()).value as Float32Array | undefined) ?? b;
      const shared = Math.min(a.length, b.length);
      if (shared === 0) return undefined;
      const at = a
        .subarray(0, shared)
        .findIndex((value, i) => value !== b[i] && !(Number.isNaN(value) && Number.isNaN(b[i])));
      if (at >= 0) return start + at;
      [a, b, start] = [a.subarray(shared), b.subarray(shared), start + shared];
      onBytes?.();
    }
  } finally {
    await Promise.all([left.return(undefined), right.return(undefined)]);
  }
}

/** Stored frequencies are rounded, to 8 bits of fraction in bfloat16. */
const rounding = 2 ** -7;

/** Old checkpoints hold the frequencies before they are scaled, so a common factor of 1 or more is allowed. */
async function checkFrequencies(source: TensorFolder, name: string, spec: DecoderSpec): Promise<void> {
  const layer = spec.layers[Number(/layers\.(\d+)\./.exec(name)?.[1] ?? 0)] ?? spec.layers[0];
  const expected = layer?.mixer.rope ?? [];
  const found: number[] = [];
  const isOfLength = source.tensors.get(name)?.shape.join() === String(expected.length);
  if (isOfLength) for await (const piece of source.values(name)) found.push(...piece);
  const ratios = found.map((value, i) => value / (expected[i] ?? Number.NaN));
  const factor = ratios[0] ?? Number.NaN;
  const isSame = (ratio: number) => Math.abs(ratio / factor - 1) <= rounding;
  if (isOfLength && factor >= 1 - rounding && ratios.every(isSame)) return;
  throw refused(
    source,
    `tensor ${name} holds other frequencies than config.json gives (rope_theta, rope_scaling)`,
    'correct config.json, or delete the tensor from the file if config.json is right',
  );
}

function refused(source: TensorFolder, message: string, hint: string): InvalidInputError {
  return new InvalidInputError(`${source.folder}: ${message}`, { where: source.folder, hint });
}
