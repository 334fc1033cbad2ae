/** Bringing a trainer to a committed state: newest verified checkpoint, then replay of batch records, each result compared. */
import { TerminalError } from '../../core/errors.ts';
import type { Digest } from '../../core/ids.ts';
import { faultPoint } from '../../infra/faults/index.ts';
import { getBlob } from '../../infra/store/blobs.ts';
import type { RunLog } from '../../infra/store/run-log.ts';
import { decodeBatch } from '../../models/batch-tensors.ts';
import { loadWeights } from '../../models/weights.ts';
import { loadCheckpoint } from './checkpoint.ts';
import type { PolicyState } from './state.ts';
import { applyBatch } from './update.ts';

export interface RecoverPorts {
  readonly log: RunLog;
  /** Local folder with the base model's files. */
  readonly baseFolder: string;
  readonly say: (text: string) => void;
  readonly tick: (note: string, done: number, total: number) => void;
}

/** Loads the base: policy version 0. */
export async function loadBase(state: PolicyState, ports: Pick<RecoverPorts, 'baseFolder' | 'tick'>): Promise<void> {
  state.reset();
  await loadWeights(ports.baseFolder, state.trainer);
  state.seal(() => ports.tick('hashing the base', 0, 0));
}

/** After it, the state's tag is `target`, the committed state at `position`. Does nothing when it is there already. */
export async function bringTo(state: PolicyState, target: Digest, position: number, ports: RecoverPorts): Promise<void> {
  if (state.tag?.stateDigest === target) return;
  const from = (await positionOf(state, position, ports.log)) ?? (await loadNewest(state, position, ports));
  for (let k = from + 1; k <= position; k++) await replay(state, k, ports);
  if (state.tag?.stateDigest !== target) {
    throw new TerminalError('StateMismatch', `Position ${position} has state ${state.tag?.stateDigest}; the job expects ${target}`);
  }
}

/** The state in memory may be a committed one a few updates back. */
async function positionOf(state: PolicyState, upTo: number, log: RunLog): Promise<number | undefined> {
  if (state.tag === undefined) return undefined;
  const newest = (await log.checkpoints(upTo))[0]?.record.iteration ?? 0;
  for (let k = upTo; k >= newest && k >= upTo - 50; k--) {
    if ((await log.at(k)).stateDigest === state.tag.stateDigest) return k;
  }
  return undefined;
}

/** A damaged checkpoint is reported and passed over; the base is always there. */
async function loadNewest(state: PolicyState, upTo: number, ports: RecoverPorts): Promise<number> {
  for (const { record, key } of await ports.log.checkpoints(upTo)) {
    try {
      state.markDirty();
      await loadCheckpoint(ports.log.store, ports.log.runId, record, state.trainer, () => ports.tick('loading a checkpoint', 0, 0));
      state.trainer.weightsChanged();
      state.trainer.zeroGrads();
      state.seal(() => ports.tick('verifying a checkpoint', 0, 0));
      faultPoint('recover.loaded', { iteration: record.iteration });
      ports.say(`loaded checkpoint ${record.iteration}`);
      return record.iteration;
    } catch (error) {
      ports.say(`checkpoint ${key} cannot be used: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
  await loadBase(state, ports);
  return 0;
}

async function replay(state: PolicyState, k: number, ports: RecoverPorts): Promise<void> {
  const { batch, update } = await ports.log.iteration(k);
  // The record says that the state stayed as it was: a bad step, or its owner's decision.
  if (update.record.outcome === 'skipped') return ports.say(`iteration ${k} was skipped: ${update.record.reason ?? ''}`);
  faultPoint('recover.replay', { iteration: k });
  const tensors = decodeBatch(await getBlob(ports.log.store, ports.log.runId, batch.record.tensors), batch.key);
  const output = applyBatch(state, batch.record, tensors, (done, total) => ports.tick(`replaying iteration ${k}`, done, total));
  if (output.stateDigest !== update.record.stateDigest) {
    throw new TerminalError('DivergentReplay', `Iteration ${k} replayed to state ${output.stateDigest}; its record says ${update.record.stateDigest}`, {
      hint: 'The engine or its settings differ from those that made the record; see the numeric profile in petrel status --json',
      where: update.key,
    });
  }
  ports.say(`replayed iteration ${k}`);
}
