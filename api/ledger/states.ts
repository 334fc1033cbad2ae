/**
 * Checks checkpoints and published weights: their manifests match the log, their shards exist, and with `deep` the
 * shards have the digests of the manifest.
 */
import { createHash } from 'node:crypto';
import { canonicalText } from './canonical.ts';
import { equalComponents, mapped, runState } from './components.ts';
import type { Components } from './components.ts';
import { digestOfBytes, pieceBytes } from './objects.ts';
import type { Objects } from './objects.ts';
import { checkpointOutputShape, checkpointShape, resultShape, weightsShape } from './records.ts';
import type { CheckpointComponent, Shard, Weights } from './records.ts';
import type { Retention } from './retention.ts';
import { checkRounded, compareWithState, headerAt, isRounded } from './rounded-weights.ts';
import { blockHasher, Tree } from './tree.ts';
import type { BlockHash } from './tree.ts';

/** A named array of a state. */
interface StatePart {
  readonly name: string;
  readonly dtype: 'F32' | 'BF16';
  readonly elements: number;
}

/** What the log committed at each position. */
export interface Committed {
  readonly state: string;
  readonly components: Components;
  /** The committed state before, when a term begins with the state of a standby. */
  readonly before?: Committed;
}

export interface StatesFound {
  /** Positions of the committed log that have a complete checkpoint, ascending. */
  readonly checkpoints: readonly number[];
  /** Manifests of states and weights that no record names. */
  readonly unnamed: number;
}

/** The parts of every state before format 3. */
const partNames = ['weights', 'm', 'v'];

const bytesOf = { F32: 4, BF16: 2 } as const;

const roundedAt = (there: Committed | undefined): string | undefined =>
  there?.components['actor']?.publications?.['BF16'];

/** `isLineage`: a term of the run names its states by the updates that made them. */
export async function checkStates(
  objects: Objects,
  runId: string,
  committed: ReadonlyMap<number, Committed>,
  deep: boolean,
  isLineage: boolean,
): Promise<StatesFound> {
  const checkpoints: number[] = [];
  let unnamed = 0;
  for (const name of await objects.store.children(objects.keys.checkpoints)) {
    const [, k = '', state = ''] = /^(\d+)-([0-9a-f]{64})\.json$/.exec(name) ?? [];
    if (state === '') {
      objects.faults.add(`${objects.keys.checkpoints}${name}`, 'a name of position and state', name);
      continue;
    }
    const there = committed.get(Number(k));
    if (there?.state !== state) unnamed++;
    const whole = await checkCheckpoint(
      objects,
      runId,
      Number(k),
      state,
      there?.state === state ? there.components : undefined,
      deep,
      isLineage,
    );
    if (whole && there?.state === state) checkpoints.push(Number(k));
  }
  const known = new Set(
    [...committed.values()].flatMap(({ components }) =>
      Object.values(components).flatMap((one) => [one.weightsDigest, ...Object.values(one.publications ?? {})]),
    ),
  );
  for (const name of await objects.store.children(objects.keys.weights)) {
    const digest = name.replace(/\.json$/, '');
    if (!known.has(digest)) unnamed++;
    const weights = await checkWeights(objects, digest, `${objects.keys.weights}${name}`, deep);
    const from = weights && checkpoints.find((k) => roundedAt(committed.get(k)) === digest);
    if (deep && weights !== undefined && from !== undefined)
      await compareWithState(
        objects,
        digest,
        weights,
        `${objects.keys.checkpoints}${from}-${committed.get(from)?.state}.json`,
      );
  }
  return { checkpoints: checkpoints.sort((a, b) => a - b), unnamed };
}

/** A manifest must exist when a job stored it or retention verified it, until retention marks it for removal. */
export async function checkManifests(objects: Objects, { marked, verified }: Retention): Promise<void> {
  const stored = await storedCheckpoints(objects);
  for (const [key, why] of [...stored, ...verified.map((one) => [one, 'retention verified it'] as const)]) {
    if (!marked.has(key) && (await objects.size(key)) === undefined)
      objects.faults.add(key, `a checkpoint: ${why}`, 'nothing');
  }
}

/** Manifests that the results of checkpoint jobs name, each with the result's key. */
async function storedCheckpoints(objects: Objects): Promise<(readonly [string, string])[]> {
  const found: (readonly [string, string])[] = [];
  for (const name of await objects.store.children(objects.keys.results)) {
    if (!name.startsWith('checkpoint-')) continue;
    const result = await objects.find(`${objects.keys.results}${name}`, resultShape);
    if (result.type !== 'read') continue;
    const output = objects.tried(result.key, 'the output of a checkpoint job', () =>
      checkpointOutputShape(result.record.output, 'output'),
    );
    if (output?.manifest !== undefined) found.push([output.manifest, `${result.key} names it`]);
    else if (output !== undefined && output.shards === undefined)
      objects.faults.add(result.key, 'the manifest that the job has written, or the shards of a part', 'neither');
  }
  return found;
}

async function checkCheckpoint(
  objects: Objects,
  runId: string,
  k: number,
  state: string,
  components: Components | undefined,
  deep: boolean,
  isLineage: boolean,
): Promise<boolean> {
  const key = `${objects.keys.checkpoints}${k}-${state}.json`;
  const found = await objects.find(key, checkpointShape);
  if (found.type !== 'read') return false;
  const { faults } = objects;
  const before = faults.all.length;
  const manifest = found.record;
  faults.equal(key, 'runId', runId, manifest.runId);
  faults.equal(key, 'iteration', k, manifest.iteration);
  faults.equal(key, 'stateDigest', state, manifest.stateDigest);
  const states = mapped(manifest.components, ({ stateDigest, weightsDigest }) => ({
    stateDigest,
    weightsDigest,
  }));
  faults.equal(key, 'stateDigest, that of its components:', runState(states), manifest.stateDigest);
  if (components !== undefined) equalComponents(faults, key, `at position ${k}`, components, states);
  for (const [name, component] of Object.entries(manifest.components)) {
    const elements = component.parameters.reduce((sum, { shape }) => sum + shape.reduce((a, b) => a * b, 1), 0);
    const parts = component.parts ?? partNames.map((one) => ({ name: one, dtype: 'F32' as const, elements }));
    const roots: Record<string, string | undefined> = {};
    for (const part of parts) roots[part.name] = await checkPart(objects, key, part, component, deep);
    if (deep) checkRoots(objects, key, name, component, roots, isLineage);
  }
  return faults.all.length === before;
}

/** A state that is named by its lineage has a digest of each part; every other one is the digest of all of them. */
function checkRoots(
  { faults }: Objects,
  key: string,
  name: string,
  component: CheckpointComponent,
  roots: Readonly<Record<string, string | undefined>>,
  isLineage: boolean,
): void {
  if (Object.values(roots).some((root) => root === undefined)) return;
  const { naming, parts = [], steps } = component;
  for (const { name: part, digest } of parts)
    if (digest !== undefined) faults.equal(key, `${part} of the shards of ${name}`, digest, roots[part]);
  const names = Object.keys(roots);
  if (isLineage && naming === 'lineage') {
    for (const { name: part, digest } of parts)
      if (digest === undefined)
        faults.add(key, `a digest of ${part} of ${name}, which is named by its lineage`, 'none');
    return;
  }
  const content = names.join() === partNames.join() ? { format: 1, ...roots } : { format: 3, parts: roots };
  faults.equal(key, `weightsDigest of the shards of ${name}`, roots[names[0] ?? ''], component.weightsDigest);
  faults.equal(
    key,
    `stateDigest of the shards of ${name}`,
    digestOfBytes(canonicalText({ ...content, steps })),
    component.stateDigest,
  );
}

/** Published weights; returns those in bf16 that are whole. */
async function checkWeights(
  objects: Objects,
  digest: string,
  key: string,
  deep: boolean,
): Promise<Weights | undefined> {
  const found = await objects.find(key, weightsShape);
  if (found.type !== 'read') return undefined;
  const { faults } = objects;
  faults.equal(key, 'weightsDigest', digest, found.record.weightsDigest);
  if (isRounded(found.record))
    return (await checkRounded(objects, digest, key, found.record, deep)) ? found.record : undefined;
  const elements = Math.max(0, ...found.record.shards.flatMap(({ tensors }) => tensors.map(({ end }) => end)));
  const root = await checkPart(objects, key, { name: 'weights', dtype: 'F32', elements }, found.record, deep);
  if (root !== undefined) faults.equal(key, 'digest of its shards', digest, root);
  return undefined;
}

/**
 * The shards of one part must follow each other without gap or overlap. With `deep` it also computes the root of their
 * digests.
 */
async function checkPart(
  objects: Objects,
  key: string,
  { name: part, dtype, elements }: StatePart,
  { shards, blockHash }: { readonly shards: readonly Shard[]; readonly blockHash?: BlockHash | undefined },
  deep: boolean,
): Promise<string | undefined> {
  const pieces = shards
    .flatMap((shard) =>
      shard.tensors.filter(({ name }) => name === part).map(({ start, end }) => ({ shard, start, end })),
    )
    .sort((a, b) => a.start - b.start);
  const tree = new Tree(elements * bytesOf[dtype], await blockHasher(blockHash));
  let next = 0;
  let whole = true;
  for (const { shard, start, end } of pieces) {
    if (start !== next || end < start)
      objects.faults.add(key, `${part} from element ${next} on`, `a shard of elements ${start} to ${end}`);
    next = end;
    const piece = { name: part, dtype, elements: end - start };
    whole = (await checkShard(objects, key, piece, shard, deep ? tree : undefined)) && whole;
  }
  if (next !== elements) objects.faults.add(key, `${elements} elements of ${part}`, String(next));
  return deep && whole && tree.complete ? tree.root() : undefined;
}

/** Adds the part's data to the tree, and all bytes to the digest. */
async function checkShard(
  objects: Objects,
  manifest: string,
  { name: part, dtype, elements }: StatePart,
  { blob, bytes }: Shard,
  tree: Tree | undefined,
): Promise<boolean> {
  const key = objects.keys.blob(blob);
  const size = await objects.size(key);
  if (size !== bytes) {
    objects.faults.add(key, `${bytes} bytes: ${manifest} names them`, size === undefined ? 'nothing' : `${size} bytes`);
    return false;
  }
  const tensors = await headerAt(objects, key, size);
  const place = tensors?.entries.get(part);
  if (
    tensors === undefined ||
    place === undefined ||
    place.dtype !== dtype ||
    place.end - place.begin !== elements * bytesOf[dtype]
  ) {
    objects.faults.add(
      key,
      `${elements} values of ${part}: ${manifest} names them`,
      place === undefined ? 'none' : `${(place.end - place.begin) / bytesOf[dtype]} of ${place.dtype}`,
    );
    return false;
  }
  if (tree === undefined) return true;
  const found = await digestAndFeed(objects, key, size, tree, tensors.start + place.begin, tensors.start + place.end);
  objects.faults.equal(key, 'digest', blob, found);
  return found === blob;
}

async function digestAndFeed(
  objects: Objects,
  key: string,
  size: number,
  tree: Tree,
  begin: number,
  end: number,
): Promise<string> {
  const hash = createHash('sha256');
  for (let at = 0; at < size; at += pieceBytes) {
    const piece = (await objects.get(key, [at, Math.min(at + pieceBytes, size)])) ?? new Uint8Array();
    hash.update(piece);
    tree.add(piece.subarray(Math.max(0, begin - at), Math.max(0, Math.min(piece.byteLength, end - at))));
  }
  return hash.digest('hex');
}
