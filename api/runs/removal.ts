/** Deletes a run. Its tombstone is written first, so that the deletion is completed later if it is interrupted. */
import { TerminalError } from '../../core/errors.ts';
import { keys, pinnedBy } from '../../core/records/keys.ts';
import { isOwnKey } from '../../core/records/own-keys.ts';
import { recordFormat } from '../../core/records/schema.ts';
import type { Tombstone } from '../../core/records/schema.ts';
import { encodeRecord } from '../../log/objects/records.ts';
import type { FoundRun } from '../stores/find.ts';
import { endedStates } from '../../core/run-states.ts';
import type { RunSummary } from './summary.ts';

/** What the deletion would remove. */
export interface RemovalLoss {
  readonly objects: number;
  readonly bytes: number;
  readonly checkpoints: number;
}

/** Throws TerminalError `Conflict` while the run can still continue without a resume. */
export function refuseUnlessEnded({ runId, state }: Pick<RunSummary, 'runId' | 'state'>): void {
  if (endedStates.has(state)) return;
  throw new TerminalError('Conflict', `${runId} is ${state}: only a run that has ended can be deleted`, {
    hint: `petrel stop ${runId} or petrel cancel ${runId} first`,
  });
}

/**
 * Throws TerminalError `Conflict` while a fork of the run is being created, because the fork still reads its objects.
 */
export async function refuseWhileForked({ runId, log: { store } }: FoundRun): Promise<void> {
  for (const name of await store.children(keys.pins(runId))) {
    const by = pinnedBy(name);
    if ((await store.head(keys.term(by, 1))) !== undefined || (await store.head(keys.tombstone(by))) !== undefined)
      continue;
    throw new TerminalError('Conflict', `${runId} is being forked: ${by} still needs its state`, {
      hint: `petrel status ${by}; to drop the fork: petrel cancel ${by}, then petrel rm ${by}`,
    });
  }
}

export async function removalLoss({ runId, log: { store } }: FoundRun): Promise<RemovalLoss> {
  const names = await removable({ runId, log: { store } });
  const sizes = await Promise.all(names.map((key) => store.head(key)));
  return {
    objects: names.length,
    bytes: sizes.reduce<number>((sum, size) => sum + (size ?? 0), 0),
    checkpoints: names.filter((key) => key.startsWith(keys.checkpoints(runId))).length,
  };
}

/**
 * Removes everything except the run record and the tombstone. Models and datasets are shared with other runs, and stay.
 */
export async function removeRun(
  { runId, log: { store } }: FoundRun,
  { state, iteration }: Pick<RunSummary, 'state' | 'iteration'>,
  now: Date,
): Promise<void> {
  const record: Tombstone = { format: recordFormat, runId, removedAt: now.toISOString(), state, iterations: iteration };
  await store.create(keys.tombstone(runId), encodeRecord(record));
  await store.remove(keys.all(runId), (key) => isRemovable(key, runId));
}

async function removable({
  runId,
  log: { store },
}: {
  readonly runId: string;
  readonly log: Pick<FoundRun['log'], 'store'>;
}): Promise<string[]> {
  return (await store.list(keys.all(runId))).filter((key) => isRemovable(key, runId));
}

/** A user's own file in the folder of a run stays. */
function isRemovable(key: string, runId: string): boolean {
  return isOwnKey(key) && key !== keys.run(runId) && key !== keys.tombstone(runId);
}
