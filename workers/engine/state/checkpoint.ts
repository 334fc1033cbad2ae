/** Writes a state as shards to the store, and reads it back. models/checkpoint.ts defines a shard. */
import type { ByteSink } from '../../../core/byte-sink.ts';
import type { Digest, RunId } from '../../../core/ids.ts';
import type { Store } from '../../../core/ports/store.ts';
import type { PolicyEngine, StateSource } from '../../../core/ports/policy.ts';
import type { BlockHash, ParameterInfo, StatePart } from '../../../core/parameters.ts';
import { bytesOfDtype } from '../../../core/records/publications.ts';
import { namedBlockHash } from '../../../core/records/block-hash.ts';
import type { Components } from '../../../core/records/components.ts';
import { recordFormat } from '../../../core/records/schema.ts';
import type { CheckpointManifest, ComponentCheckpoint, ShardInfo } from '../../../core/records/schema.ts';
import { faultPoint } from '../../../log/faults/index.ts';
import type { PartOfCheckpoint } from '../../../core/wire/jobs/index.ts';
import { putJsonBlob, putLargeBlob, streamBlob } from '../../../log/objects/blobs.ts';
import { putManifest } from '../../../log/objects/manifests.ts';
import type { PartRoots, StateDigests } from '../../../log/objects/digest.ts';
import { damagedCheckpoint, defaultShardBytes, encodeShard, readShard } from '../../../models/checkpoint.ts';

/** A copy of a component's state that does not change. */
export interface Snapshot {
  readonly parts: readonly PartToSave[];
  readonly steps: number;
  readonly parameters: readonly ParameterInfo[];
  readonly digests: StateDigests & { readonly naming?: 'lineage' };
  /** Roots of the parts. */
  readonly roots: PartRoots;
  readonly blockHash: BlockHash;
}

export interface ShardPlace {
  readonly store: Store;
  readonly runId: RunId;
  readonly iteration: number;
  /** Size of a shard, a multiple of 4; default: 256 MiB. */
  readonly shardBytes?: number;
}

export interface CheckpointPlace extends ShardPlace {
  readonly term: number;
}

/** Writes the shards of all components, then the manifest. Returns the manifest's key. */
export async function saveCheckpoint(
  place: CheckpointPlace,
  stateDigest: Digest,
  snapshots: Components<Snapshot>,
): Promise<string> {
  const { store, ...named } = place;
  return putManifest(store, {
    format: recordFormat,
    runId: named.runId,
    term: named.term,
    iteration: named.iteration,
    stateDigest,
    components: await saveComponents(place, snapshots),
  });
}

/** Writes the shards of some components. Returns the digest of a blob, PartOfCheckpoint, that names them. */
export async function savePartOfCheckpoint(place: CheckpointPlace, snapshots: Components<Snapshot>): Promise<Digest> {
  const { store, runId, iteration } = place;
  const part: PartOfCheckpoint = { iteration, components: await saveComponents(place, snapshots) };
  return putJsonBlob(store, runId, part);
}

async function saveComponents(
  place: CheckpointPlace,
  snapshots: Components<Snapshot>,
): Promise<CheckpointManifest['components']> {
  const components: CheckpointManifest['components'] = {};
  for (const [component, snapshot] of Object.entries(snapshots))
    components[component] = await saveComponent(place, component, snapshot);
  return components;
}

async function saveComponent(
  place: CheckpointPlace,
  component: string,
  snapshot: Snapshot,
): Promise<ComponentCheckpoint> {
  const shards: ShardInfo[] = [];
  // Two components may have equal values, and no two objects may share a shard.
  const origin = { iteration: String(place.iteration), ...(component !== 'actor' && { component }) };
  for (const part of snapshot.parts) shards.push(...(await savePart(place, part, origin)));
  const parts = snapshot.parts.map(({ name, dtype, elements }) => {
    const digest = snapshot.roots[name];
    return { name, dtype, elements, ...(digest !== undefined && { digest }) };
  });
  const parameters = snapshot.parameters.map(({ name, shape }) => ({ name, shape: [...shape] }));
  const { digests, blockHash, steps } = snapshot;
  return { ...digests, ...namedBlockHash(blockHash), steps, parts, shards, parameters };
}

/** A part of a state that does not change while it is written. */
export interface PartToSave extends StatePart {
  /** Elements [start, end). Called for one shard after the other, when the one before is in the store. */
  readonly read: (start: number, end: number) => Promise<Float32Array | Uint16Array>;
}

/**
 * Writes one part of a state. `origin`: the owner of the shards; it is in their bytes, so that no other object has the
 * same shards.
 */
export async function savePart(
  place: ShardPlace,
  { name, dtype, elements, read }: PartToSave,
  origin: Readonly<Record<string, string>>,
): Promise<ShardInfo[]> {
  const shards: ShardInfo[] = [];
  const perShard = (place.shardBytes ?? defaultShardBytes) / bytesOfDtype[dtype];
  for (let start = 0; start < elements; start += perShard) {
    const values = await read(start, Math.min(start + perShard, elements));
    const { pieces, bytes, tensors } = encodeShard(name, start, values, origin);
    faultPoint('checkpoint.shard', { iteration: place.iteration, component: origin['component'] ?? 'actor' });
    shards.push({ blob: await putLargeBlob(place.store, place.runId, pieces), bytes, tensors });
  }
  return shards;
}

/** The model into which a checkpoint is loaded. */
export type LoadTarget = Pick<PolicyEngine, 'parts'> & { readonly parameters: readonly ParameterInfo[] };

/**
 * A checkpoint as the source of a state. Every shard is streamed by digest; the reader must hash the whole state,
 * because it knows the expected digest. Throws TerminalError `DamagedCheckpoint` when the manifest does not fit the
 * model.
 */
export function checkpointSource(
  store: Store,
  runId: RunId,
  manifest: CheckpointManifest,
  into: LoadTarget,
  onBlock: () => void,
  name = 'actor',
): StateSource {
  const component = manifest.components[name];
  if (component === undefined) throw damagedCheckpoint(manifest, `it has no component ${name}`);
  checkFit(manifest, component, into);
  return {
    type: 'pieces',
    steps: component.steps,
    read: async (sinkOf) => {
      for (const shard of component.shards) {
        await readShard(shard, component.parts, streamBlob(store, runId, shard.blob), (piece) =>
          showing(onBlock, sinkOf(piece)),
        );
      }
    },
  };
}

/** Checked before the first byte is read: the parameters are this model's, and every piece is inside its part. */
function checkFit(
  manifest: CheckpointManifest,
  component: ComponentCheckpoint,
  { parameters, parts }: LoadTarget,
): void {
  const shapes = (all: readonly { readonly name: string; readonly shape: readonly number[] }[]) =>
    all.map(({ name, shape }) => `${name} ${shape.join('×')}`);
  const [expected, found] = [shapes(parameters), shapes(component.parameters)];
  const other = expected.findIndex((text, i) => text !== found[i]);
  if (other >= 0 || expected.length !== found.length) {
    throw damagedCheckpoint(
      manifest,
      `parameter ${other}: expected ${expected[other] ?? 'none'}, found ${found[other] ?? 'none'}`,
    );
  }
  const kinds = (all: readonly StatePart[]) =>
    all.map(({ name, dtype, elements }) => `${name}: ${elements} ${dtype}`).join(', ');
  if (kinds(component.parts) !== kinds(parts))
    throw damagedCheckpoint(manifest, `its parts are ${kinds(component.parts)}; the model has ${kinds(parts)}`);
  for (const { name, start, end } of component.shards.flatMap(({ tensors }) => tensors)) {
    const elements = parts.find((part) => part.name === name)?.elements ?? 0;
    if (start > end || end > elements)
      throw damagedCheckpoint(manifest, `${name} ${start}–${end} is outside of ${elements} elements`);
  }
}

/** A sink that reports progress for every piece. */
function showing(onBlock: () => void, sink: ByteSink): ByteSink {
  return async (bytes) => {
    await sink(bytes);
    onBlock();
  };
}
