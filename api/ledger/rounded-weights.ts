/**
 * Weights that are published in bf16: whole tensors under their names, some rounded to bf16, some in fp32. Their digest
 * is over the values of all tensors in the order of their elements, each in its type: core/records/FORMAT.md, "Digests
 * of a state".
 */
import { createHash } from 'node:crypto';
import { pieceBytes } from './objects.ts';
import type { Objects } from './objects.ts';
import { checkpointShape } from './records.ts';
import type { Shard, Weights } from './records.ts';
import { headerOf, readTensors } from './tensors.ts';
import type { Tensors } from './tensors.ts';
import { blockHasher, Tree } from './tree.ts';

const widths = { F32: 4, BF16: 2 } as const;

interface Place {
  readonly name: string;
  readonly start: number;
  readonly end: number;
  readonly dtype: 'F32' | 'BF16';
  readonly blob: string;
}

/** The fp32 values are one tensor, `weights`. */
export const isRounded = ({ dtypes }: Weights): boolean => Object.values(dtypes).includes('BF16');

/**
 * Checks rounded weights: the tensors follow each other, and lie in the shards as the manifest says; with `deep` they
 * have its digest.
 */
export async function checkRounded(
  objects: Objects,
  digest: string,
  key: string,
  weights: Weights,
  deep: boolean,
): Promise<boolean> {
  const { faults } = objects;
  const before = faults.all.length;
  const places = placesOf(weights);
  let next = 0;
  for (const { name, start, end } of places) {
    if (start !== next || end < start)
      faults.add(key, `a tensor from element ${next} on`, `${name} from ${start} to ${end}`);
    next = end;
  }
  const names = (all: readonly string[]) => [...all].sort().join(', ');
  faults.equal(key, 'names of its tensors', names(Object.keys(weights.dtypes)), names(places.map(({ name }) => name)));
  const files = new Map<string, Tensors>();
  for (const shard of weights.shards) {
    const tensors = await checkShard(objects, key, shard, weights, deep);
    if (tensors !== undefined) files.set(shard.blob, tensors);
  }
  if (!deep || faults.all.length !== before) return faults.all.length === before;
  const tree = new Tree(bytesOf(places), await blockHasher('blake3'));
  for (const { blob, name } of places) {
    const tensors = files.get(blob);
    const entry = tensors?.entries.get(name);
    if (tensors === undefined || entry === undefined) return false;
    for await (const piece of piecesOf(objects, blob, tensors.start + entry.begin, tensors.start + entry.end))
      tree.add(piece);
  }
  faults.equal(key, 'digest of its shards', digest, tree.complete ? tree.root() : undefined);
  return faults.all.length === before;
}

/** Rounds the weights of a checkpoint, which is whole, and compares. */
export async function compareWithState(
  objects: Objects,
  digest: string,
  weights: Weights,
  checkpoint: string,
): Promise<void> {
  const found = await objects.find(checkpoint, checkpointShape);
  const component = found.type === 'read' ? found.record.components['actor'] : undefined;
  if (component === undefined) return;
  const places = placesOf(weights);
  const tree = new Tree(bytesOf(places), await blockHasher('blake3'));
  const rounding = new Rounding(places, tree);
  const inOrder = component.shards
    .flatMap(({ blob, bytes, tensors }) =>
      tensors.filter(({ name }) => name === 'weights').map(({ start }) => ({ blob, bytes, start })),
    )
    .sort((a, b) => a.start - b.start);
  for (const { blob, bytes } of inOrder) {
    const tensors = await headerAt(objects, objects.keys.blob(blob), bytes);
    const entry = tensors?.entries.get('weights');
    if (tensors === undefined || entry === undefined) return;
    for await (const piece of piecesOf(objects, blob, tensors.start + entry.begin, tensors.start + entry.end))
      rounding.add(piece);
  }
  objects.faults.equal(
    checkpoint,
    'digest of its weights as they are published in BF16',
    digest,
    tree.complete ? tree.root() : undefined,
  );
}

/** Takes fp32 values in the order of their elements, and gives each in its type to the tree. */
class Rounding {
  readonly #places: readonly Place[];
  readonly #tree: Tree;
  #element = 0;
  #place = 0;

  constructor(places: readonly Place[], tree: Tree) {
    this.#places = places;
    this.#tree = tree;
  }

  add(bytes: Uint8Array): void {
    const bits = new Uint32Array(bytes.slice().buffer);
    for (let at = 0; at < bits.length; ) {
      const place = this.#places[this.#place];
      if (place === undefined) return;
      const some = bits.subarray(at, at + place.end - this.#element);
      this.#tree.add(place.dtype === 'F32' ? bytesIn(some) : bytesIn(Uint16Array.from(some, rounded)));
      at += some.length;
      this.#element += some.length;
      if (this.#element === place.end) this.#place += 1;
    }
  }
}

const bytesIn = ({ buffer, byteOffset, byteLength }: Uint32Array | Uint16Array): Uint8Array =>
  new Uint8Array(buffer, byteOffset, byteLength);

/**
 * The upper half of an fp32 value, rounded to nearest even as the products' instruction does: denormal numbers become
 * 0.
 */
function rounded(bits: number): number {
  const exponent = (bits >>> 23) & 0xff;
  if (exponent === 0) return (bits >>> 16) & 0x8000;
  const isNaN = exponent === 0xff && (bits & 0x7fffff) !== 0;
  return isNaN ? (bits >>> 16) | 0x40 : (bits + 0x7fff + ((bits >>> 16) & 1)) >>> 16;
}

const placesOf = ({ shards, dtypes }: Weights): Place[] =>
  shards
    .flatMap(({ blob, tensors }) => tensors.map((one) => ({ ...one, dtype: dtypes[one.name] ?? 'F32', blob })))
    .sort((a, b) => a.start - b.start);

const bytesOf = (places: readonly Place[]): number =>
  places.reduce((sum, { start, end, dtype }) => sum + (end - start) * widths[dtype], 0);

/** The header of a shard that has these tensors; with `deep` its bytes have the digest that is its name. */
async function checkShard(
  objects: Objects,
  manifest: string,
  { blob, bytes, tensors: named }: Shard,
  { dtypes }: Weights,
  deep: boolean,
): Promise<Tensors | undefined> {
  const key = objects.keys.blob(blob);
  const size = await objects.size(key);
  if (size !== bytes) {
    objects.faults.add(key, `${bytes} bytes: ${manifest} names them`, size === undefined ? 'nothing' : `${size} bytes`);
    return undefined;
  }
  const tensors = await headerAt(objects, key, size);
  if (tensors === undefined) return undefined;
  for (const { name, start, end } of named) {
    const entry = tensors.entries.get(name);
    const dtype = dtypes[name];
    const isThere = entry !== undefined && dtype !== undefined && entry.dtype === dtype;
    if (!isThere || entry.end - entry.begin !== (end - start) * widths[dtype])
      objects.faults.add(
        key,
        `${end - start} values of ${name} in ${dtype}: ${manifest} names them`,
        entry?.dtype ?? 'none',
      );
  }
  if (!deep) return tensors;
  const hash = createHash('sha256');
  for await (const piece of piecesOf(objects, blob, 0, size)) hash.update(piece);
  objects.faults.equal(key, 'digest', blob, hash.digest('hex'));
  return tensors;
}

/** The header of safetensors; undefined, and a fault, where there is none. */
export async function headerAt(objects: Objects, key: string, size: number): Promise<Tensors | undefined> {
  const first = size < 8 ? new Uint8Array() : ((await objects.get(key, [0, 8])) ?? new Uint8Array());
  const length = objects.tried(key, 'safetensors', () => headerOf(first, size));
  const json = length === undefined ? undefined : await objects.get(key, [8, 8 + length]);
  return json && objects.tried(key, 'safetensors', () => readTensors(json, { length: json.byteLength, size }));
}

/** Bytes [begin, end) of a blob. */
async function* piecesOf(objects: Objects, blob: string, begin: number, end: number): AsyncGenerator<Uint8Array> {
  for (let at = begin; at < end; at += pieceBytes)
    yield (await objects.get(objects.keys.blob(blob), [at, Math.min(at + pieceBytes, end)])) ?? new Uint8Array();
}
