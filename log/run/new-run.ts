/** Records a run that is about to start: first its id, then recipe, inputs and state. Each step may be repeated. */
import { keys } from '../../core/records/keys.ts';
import { recordFormat } from '../../core/records/schema.ts';
import type { RevisionRecord, RunRecord } from '../../core/records/schema.ts';
import { faultPoint } from '../faults/index.ts';
import { putBlob } from '../objects/blobs.ts';
import { encodeRecord } from '../objects/records.ts';
import type { RunLog } from './run-log.ts';
import { appendStatus } from './status.ts';

/** Everything that defines a run, except its id. */
export interface NewRun extends Pick<RevisionRecord, 'recipe' | 'inputs'> {
  /** Code of the user's own: the blobs that the inputs name (`modulesOf`). */
  readonly modules?: readonly Uint8Array[];
  /** Start of a fork, whose state is `origin`. */
  readonly fromPosition?: number;
}

/** False when the id is taken. */
export async function claimRun(log: RunLog, record: Omit<RunRecord, 'format' | 'runId'>): Promise<boolean> {
  const claim: RunRecord = { format: recordFormat, runId: log.runId, ...record };
  const outcome = await log.store.create(keys.run(log.runId), encodeRecord(claim));
  faultPoint('decide.after', { kind: 'run', runId: log.runId, iteration: 0 });
  return outcome === 'created';
}

/** Writes the run, in the process that claimed the id. A run that has a state already is left unchanged. */
export async function writeRun(
  log: RunLog,
  { recipe, inputs, modules = [], fromPosition = 0 }: NewRun,
  now: Date,
): Promise<void> {
  const { store, runId } = log;
  for (const module of modules) await putBlob(store, runId, module);
  const revision: RevisionRecord = {
    format: recordFormat,
    runId,
    revision: 1,
    fromPosition,
    recipe,
    inputs,
    createdAt: now.toISOString(),
  };
  await store.create(keys.revision(runId, 1), encodeRecord(revision));
  if ((await log.status.newest()) === undefined) await appendStatus(log, { wish: 'run', state: 'queued' }, now);
}
