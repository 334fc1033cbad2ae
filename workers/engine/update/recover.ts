/**
 * Restores a trainer to a committed state: loads the newest verified checkpoint, then replays batch records and
 * compares each result.
 */
import { damage, earlierStart, isDamage, logHole } from '../../../core/records/damage.ts';
import { errorToJson, PauseError, saysNothingOfData, TerminalError } from '../../../core/errors.ts';
import type { PetrelError } from '../../../core/errors.ts';
import type { Digest, RunId } from '../../../core/ids.ts';
import { restoreMetrics } from '../../../core/metrics.ts';
import { keys } from '../../../core/records/keys.ts';
import { checkpointManifest } from '../../../core/records/schema.ts';
import type { ComponentCheckpoint } from '../../../core/records/schema.ts';
import { faultPoint } from '../../../log/faults/index.ts';
import type { Call } from '../../../core/ports/policy.ts';
import { runStateOf } from '../../../log/objects/digest.ts';
import type { PartRoots } from '../../../log/objects/digest.ts';
import { needRecord } from '../../../log/objects/records.ts';
import type { CheckpointName } from '../../../log/run/run-checkpoints.ts';
import type { RunLog } from '../../../log/run/run-log.ts';
import { isNamedByLineage } from '../../../log/run/state-names.ts';
import { headOfConfig } from '../../../models/config.ts';
import { readConfigJson } from '../../../models/folder.ts';
import { checkpointPlace, otherReplayCode } from '../../../core/wire/trainer-answers.ts';
import { checkpointSource } from '../state/checkpoint.ts';
import type { OwnLoss } from '../job/own-modules.ts';
import { namesOf } from '../state/state.ts';
import type { Applied, RunState } from '../state/state.ts';
import { openBatch } from '../samples/stored-batch.ts';
import { applyBatch } from './update.ts';

export interface RecoverPorts {
  /** The run of the job. */
  readonly runId: RunId;
  /** The run's log, or its origin's. */
  readonly log: RunLog;
  /** Local folder with the base model's files. */
  readonly baseFolder: string;
  /** Every machine that serves the run replays its batches to the same bits. */
  readonly reproducible: boolean;
  /** The state may have other bits than the log: it applies the same batches, and counts as the position after them. */
  readonly follows?: boolean;
  readonly say: (text: string) => void;
  readonly signal?: AbortSignal;
  /** Runs losses of the user's own. */
  readonly ownLoss?: OwnLoss;
  readonly tick: (note: string, done: number, total: number) => void;
  /** Records what a restored state has cost. */
  readonly count?: (name: string, value: number) => void;
}

const [stateLoads, replayedIterations] = restoreMetrics;

const callOf = ({ tick, signal }: Pick<RecoverPorts, 'tick' | 'signal'>, note: string): Call => ({
  tick: () => tick(note, 0, 0),
  ...(signal && { signal }),
});

/** Loads the base: policy version 0. */
export async function loadBase(
  state: RunState,
  ports: Pick<RecoverPorts, 'baseFolder' | 'tick' | 'signal'>,
): Promise<void> {
  const head = headOfConfig(await readConfigJson(ports.baseFolder));
  await state.load(
    // A value or reward model begins as the policy, with a head of its own unless the folder has such a head.
    (_, engine) => ({ type: 'folder', folder: ports.baseFolder, newHead: engine.head !== head }),
    callOf(ports, 'loading the base'),
    callOf(ports, 'hashing the base'),
  );
}

/**
 * Afterwards the state's tag is `target`, the committed state of its components at `position`. Does nothing when it
 * already is. Throws TerminalError `OtherReplay`, with the newest checkpoint in memory, when a run that need not be
 * reproducible replays to another state, unless it only follows.
 */
export async function restoreTo(state: RunState, target: Digest, position: number, ports: RecoverPorts): Promise<void> {
  if (state.tag?.stateDigest === target) return;
  const inMemory = await positionOf(state, position, ports);
  const from = inMemory ?? (await loadNewest(state, position, ports));
  ports.count?.(stateLoads, inMemory === undefined ? 1 : 0);
  ports.count?.(replayedIterations, position - from);
  for (let k = from + 1; k <= position; k++) {
    const other = await replay(state, k, ports);
    if (other === undefined || ports.follows === true) continue;
    if (ports.reproducible || ports.log.runId !== ports.runId) throw divergent(ports, k, other);
    state.markDirty();
    throw otherReplay(ports, k, await loadNewest(state, position, ports));
  }
  if (state.tag?.stateDigest !== target && ports.follows !== true) {
    throw new TerminalError(
      'StateMismatch',
      `Position ${position} has state ${state.tag?.stateDigest}; the job expects ${target}`,
    );
  }
}

/** The state in memory may be a committed one a few updates back, or that of a standby. */
async function positionOf(
  state: RunState,
  upTo: number,
  { log, follows }: Pick<RecoverPorts, 'log' | 'follows'>,
): Promise<number | undefined> {
  if (state.tag === undefined) return undefined;
  const newest = (await log.checkpoints.newestName(upTo))?.iteration ?? 0;
  for (let k = upTo; k >= newest && k >= upTo - 50; k--) {
    const there = await log.at(k).catch((error: unknown) => {
      if (isDamage(error)) return undefined; // a hole: the replay reaches it and throws an error with a hint
      throw error;
    });
    if (there !== undefined && state.digestIn(there) === state.tag.stateDigest) return k;
    if (
      there !== undefined &&
      follows === true &&
      state.madeBy !== undefined &&
      (await hasApplied(state.madeBy, k, log))
    )
      return k;
  }
  return undefined;
}

/** Is the batch of iteration k the one that this update has applied? Its record names all before it. */
export async function hasApplied({ batch }: Applied, k: number, log: RunLog): Promise<boolean> {
  if (k <= (await log.first())) return false;
  try {
    return (await log.iteration(k)).batch.digest === batch;
  } catch (error) {
    if (isDamage(error)) return false; // the replay reaches it and throws an error with a hint
    throw error;
  }
}

/** A damaged checkpoint is reported and skipped; the base model can always be loaded. */
async function loadNewest(state: RunState, upTo: number, ports: RecoverPorts): Promise<number> {
  for await (const name of ports.log.checkpoints.eachName(upTo)) {
    try {
      await loadNamed(state, name, ports);
      ports.say(`loaded checkpoint ${name.iteration}`);
      return name.iteration;
    } catch (error) {
      if (saysNothingOfData(error)) throw error;
      state.markDirty();
      ports.say(`checkpoint ${name.iteration} cannot be used, trying an older one: ${errorToJson(error).message}`);
    }
  }
  const first = await ports.log.first();
  if (first > 0)
    throw damage(
      'MissingRecord',
      keys.checkpoints(ports.log.runId),
      `no checkpoint can be used, and this fork has no base but that of iteration ${first}`,
    );
  await loadBase(state, ports);
  const stateDigest = state.digestIn(await ports.log.at(0));
  if (state.tag?.stateDigest !== stateDigest) {
    throw damage(
      'DamagedModel',
      `models/${state.model}`,
      `the base in memory is state ${state.tag?.stateDigest}; the first term says ${stateDigest}`,
    );
  }
  return 0;
}

/**
 * The log gives the state at the position, and the checkpoint's name repeats it: the components of the manifest must be
 * that state, and the loaded ones must be theirs.
 */
async function loadNamed(
  state: RunState,
  { iteration, stateDigest, key }: CheckpointName,
  ports: RecoverPorts,
): Promise<void> {
  const { log, tick } = ports;
  const { record } = await needRecord(log.store, key, checkpointManifest);
  const found = await state.load(
    (name, engine) =>
      checkpointSource(log.store, log.runId, record, engine, () => tick('loading a checkpoint', 0, 0), name),
    callOf(ports, 'loading a checkpoint'),
    callOf(ports, 'verifying a checkpoint'),
  );
  const whole = runStateOf(record.components);
  if (whole !== stateDigest) throw damage('DamagedRecord', key, `its components are the state ${whole}`);
  for (const [name, { stateDigest: content, roots = {} }] of Object.entries(found.components)) {
    const named = record.components[name];
    if (content === named?.stateDigest) continue;
    const isSame = named !== undefined && hasRoots(named, roots) && (await isNamedByLineage(log, named));
    if (!isSame) throw damage('DamagedRecord', key, `its state hashes to ${content} (${name})`);
  }
  state.adopt(record.components);
  faultPoint('recover.loaded', { iteration });
}

/** A state that is named by its lineage has the content that its manifest says of each part. */
function hasRoots({ parts }: ComponentCheckpoint, roots: PartRoots): boolean {
  return parts.length > 0 && parts.every(({ name, digest }) => digest !== undefined && digest === roots[name]);
}

/** What a replay has found, beside what the log has there. */
interface OtherState {
  readonly key: string;
  readonly found: Digest;
  readonly committed: Digest;
}

/** Resolves with the state that it found when the log has another one. */
async function replay(state: RunState, k: number, ports: RecoverPorts): Promise<OtherState | undefined> {
  const { batch, update, contents } = await readIteration(k, ports);
  // The record says that the state did not change: a bad step, or the user skipped the batch.
  if (contents === undefined) {
    ports.say(`iteration ${k} was skipped: ${update.record.reason ?? ''}`);
    return undefined;
  }
  faultPoint('recover.replay', { iteration: k });
  const from = state.tag?.stateDigest;
  const output = await applyBatch(state, batch, contents, {
    tick: (done, total) => ports.tick(`replaying iteration ${k}`, done, total),
    ...(ports.ownLoss && { ownLoss: ports.ownLoss }),
    ...(ports.signal && { signal: ports.signal }),
  }).catch((error: unknown) => {
    throw isDamage(error) ? cannotReplay(k, error, ports) : error; // a shard that is read now
  });
  if (from !== undefined) state.noteUpdate({ ...namesOf(batch), from, output });
  // A later term may begin here with the state of a standby, which is not the one that the update has made.
  const committed = state.digestIn(await ports.log.at(k));
  if (output.stateDigest !== committed) return { key: update.key, found: output.stateDigest, committed };
  ports.say(`replayed iteration ${k}`);
  return undefined;
}

/**
 * The data for replaying iteration k; no contents when it is not trained. Throws PauseError `LogHole` when some of it
 * is lost.
 */
async function readIteration(k: number, ports: RecoverPorts) {
  const { log } = ports;
  try {
    const { batch, update } = await log.iteration(k);
    if (update.record.outcome === 'skipped') return { batch, update, contents: undefined };
    return { batch, update, contents: await openBatch(log.store, log.runId, batch.record, batch.key) };
  } catch (error) {
    throw isDamage(error) ? cannotReplay(k, error, ports) : error;
  }
}

function cannotReplay(k: number, { where, message }: PetrelError, { runId, log }: RecoverPorts): PauseError {
  const what = `iteration ${k} cannot be replayed: ${message}`;
  return logHole(log.runId, k - 1, where ?? keys.all(log.runId), what, runId);
}

/** The control process opens a new term after `checkpoint` and applies the later batches again. */
function otherReplay({ log }: RecoverPorts, k: number, checkpoint: number): TerminalError {
  return new TerminalError(
    otherReplayCode,
    `iteration ${k} of ${log.runId} came out otherwise when it was computed again`,
    { where: checkpointPlace(log.runId, checkpoint) },
  );
}

/**
 * The replay gave another state than the record. The user must find a compatible machine or discard later iterations.
 */
function divergent({ runId, log }: RecoverPorts, k: number, { key, found, committed }: OtherState): PauseError {
  return new PauseError(
    'DivergentReplay',
    `${key}: iteration ${k} replayed to state ${found}; the log says ${committed}`,
    {
      where: key,
      hint:
        `this machine or this petrel version computes differently than the recorded one (petrel status ${log.runId} --json: numeric profile). Run petrel resume ${runId} on a machine with that profile, ` +
        `or ${earlierStart(runId, log.runId, k - 1)}`,
    },
  );
}
