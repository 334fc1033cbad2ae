/**
 * Reading what a run would be recovered from: every blob of its checkpoints, and the batches to be replayed after the
 * oldest one. A shard at a time, so that a large state needs little memory.
 */
import type { PetrelError } from '../../core/errors.ts';
import { findHole } from '../../log/run/log-holes.ts';
import { errorToJson } from '../../core/errors.ts';
import type { StatePart } from '../../core/parameters.ts';
import { bytesOfDtype } from '../../core/records/publications.ts';
import { blockHashOf } from '../../core/records/block-hash.ts';
import { checkpointManifest } from '../../core/records/schema.ts';
import type { CheckpointManifest, ComponentCheckpoint } from '../../core/records/schema.ts';
import { blockHasher } from '../../log/objects/block-hasher.ts';
import { runStateOf, stateDigestsOf, TreeDigest } from '../../log/objects/digest.ts';
import { needRecord } from '../../log/objects/records.ts';
import type { RunLog } from '../../log/run/run-log.ts';
import { isNamedByLineage } from '../../log/run/state-names.ts';
import { damagedCheckpoint } from '../../models/checkpoint.ts';
import { partsOfBatch } from '../batch-parts.ts';
import { noSuchIteration } from '../no-such-iteration.ts';
import { streamPart } from './part-stream.ts';

export interface IterationVerdict {
  readonly iteration: number;
  readonly ok: boolean;
  /** Bytes read. */
  readonly bytes: number;
  /** What is wrong, in one sentence. */
  readonly problem?: string;
}

export interface CheckpointVerdict extends IterationVerdict {
  readonly stateDigest: string;
}

/** Ascending; only that of `iteration` when it is given. Throws TerminalError `NotFound` when there is none. */
export async function verifyCheckpoints(
  log: RunLog,
  iteration: number | undefined,
  say: (text: string) => void,
): Promise<CheckpointVerdict[]> {
  const names = (await log.checkpoints.names()).reverse();
  const chosen = names.filter((name) => iteration === undefined || name.iteration === iteration);
  if (chosen.length === 0)
    throw noSuchIteration(
      iteration === undefined ? 'checkpoint' : 'checkpoint of iteration',
      iteration,
      names.map((name) => name.iteration),
    );
  const verdicts: CheckpointVerdict[] = [];
  for (const { iteration: k, stateDigest, key } of chosen) {
    say(`reading checkpoint ${k}`);
    const verdict = await judge(k, async (read) =>
      checkState((await needRecord(log.store, key, checkpointManifest)).record, log, read),
    );
    verdicts.push({ ...verdict, stateDigest });
  }
  return verdicts;
}

/** Batches after `from` up to the head: each chained to the record before it, each with its tensors. */
export async function verifyBatches(
  log: RunLog,
  from: number,
  say: (text: string) => void,
): Promise<IterationVerdict[]> {
  const position = (await log.head())?.position ?? 0;
  const verdicts: IterationVerdict[] = [];
  if (position > from) say(`reading the batches of iterations ${from + 1} to ${position}`);
  for (let k = from + 1; k <= position; k++) verdicts.push(await judge(k, (read) => checkBatch(log, k, read)));
  return verdicts;
}

type Read = (bytes: number) => void;

async function judge(iteration: number, check: (read: Read) => Promise<void>): Promise<IterationVerdict> {
  let bytes = 0;
  try {
    await check((more) => (bytes += more));
    return { iteration, ok: true, bytes };
  } catch (error) {
    return { iteration, ok: false, bytes, problem: errorToJson(error).message };
  }
}

/** Digests of the parts, piece by piece, against the manifest. */
async function checkState(manifest: CheckpointManifest, log: RunLog, read: Read): Promise<void> {
  for (const [name, component] of Object.entries(manifest.components)) {
    const roots: Record<string, string> = {};
    for (const part of component.parts) {
      const root = await rootOf(manifest, component, part, log, read);
      if (part.digest !== undefined && root !== part.digest)
        throw damagedCheckpoint(manifest, `${part.name} of ${name} hashes to ${root}`);
      roots[part.name] = root;
    }
    if (await isNamedByLineage(log, component)) continue;
    const digests = stateDigestsOf(roots, component.steps);
    if (digests.weightsDigest !== component.weightsDigest)
      throw damagedCheckpoint(manifest, `the weights of ${name} hash to ${digests.weightsDigest}`);
    if (digests.stateDigest !== component.stateDigest)
      throw damagedCheckpoint(manifest, `the state of ${name} hashes to ${digests.stateDigest}`);
  }
  const state = runStateOf(manifest.components);
  if (state !== manifest.stateDigest) throw damagedCheckpoint(manifest, `its state hashes to ${state}`);
}

async function rootOf(
  manifest: CheckpointManifest,
  component: ComponentCheckpoint,
  part: StatePart,
  log: RunLog,
  read: Read,
): Promise<string> {
  const tree = new TreeDigest(part.elements * bytesOfDtype[part.dtype], await blockHasher(blockHashOf(component)));
  const take = (bytes: Uint8Array) => {
    tree.add(bytes);
    read(bytes.byteLength);
  };
  await streamPart(log, manifest, component, part, take, read);
  return tree.root();
}

async function checkBatch(log: RunLog, k: number, read: Read): Promise<void> {
  const { batch, update } = await log.iteration(k);
  const before = await log.at(k - 1);
  if (batch.record.parent !== before.parent) throw new Error(`${batch.key}: its parent is not the record before it`);
  if (batch.record.parentState !== before.stateDigest)
    throw new Error(`${batch.key}: its parent state is not that of iteration ${k - 1}`);
  if (update.record.batch !== batch.digest) throw new Error(`${update.key}: it applies another batch`);
  for await (const _ of partsOfBatch(log, batch.record, batch.key, read)); // it throws what is wrong
}

/** A record that must be there and is not: the newest records of the log name what is missing. */
export async function findLogHole(log: RunLog): Promise<PetrelError | undefined> {
  return findHole(log, await log.head());
}
