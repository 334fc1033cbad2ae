/**
 * Another run that begins with a committed state of this one: weights, moments, steps, counters and the draws still to be
 * skipped. It counts on from there, and takes the state into objects of its own before its first iteration, so that
 * it needs nothing of its origin later.
 */
import { TerminalError } from '../../core/errors.ts';
import { keys } from '../../core/records/keys.ts';
import { recordFormat } from '../../core/records/schema.ts';
import type { Pin, RevisionRecord, RunRecord } from '../../core/records/schema.ts';
import { mergeRanges } from '../../core/rl/draws.ts';
import { getBlob } from '../../infra/store/blobs.ts';
import { writeRun } from '../../infra/store/new-run.ts';
import { encodeRecord } from '../../infra/store/records.ts';
import type { RunLog } from '../../infra/store/run-log.ts';
import type { ChangedRecipe } from './changed-recipe.ts';
import type { FoundRun } from './find.ts';
import { claimNewId } from './start.ts';

/** Throws TerminalError `NotFound` for a position that is not committed. */
export async function originAt(
  { runId, log }: FoundRun,
  from: number | undefined,
): Promise<NonNullable<RunRecord['origin']>> {
  const head = await log.head();
  if (head === undefined)
    throw new TerminalError('NotFound', `${runId} has not begun: it has no state to begin with`, {
      hint: 'petrel run starts a run with its base model',
    });
  const position = from ?? head.position;
  const first = await log.first();
  if (position < first || position > head.position) {
    throw new TerminalError('NotFound', `${runId} has no committed iteration ${position}`, {
      hint: `--from takes ${first} to ${head.position}`,
    });
  }
  const { stateDigest, counters } = await log.at(position);
  const skippedDraws = mergeRanges(
    (await log.chain()).flatMap(({ record }) => record.skippedDraws),
    counters.cursor,
  );
  return { runId, position, stateDigest, counters, skippedDraws };
}

/** The recipe that the run went on with from there, so that a fork without changes repeats its numbers. */
export async function revisionAfter(log: RunLog, position: number): Promise<RevisionRecord> {
  const head = await log.head();
  return log.revision(
    head === undefined || position >= head.position
      ? undefined
      : (await log.iteration(position + 1)).batch.record.revision,
  );
}

/** Writes the new run down; nothing runs yet. What its origin has at that position is pinned until it is taken over. */
export async function createFork(
  found: FoundRun,
  origin: NonNullable<RunRecord['origin']>,
  revision: RevisionRecord,
  changed: ChangedRecipe | undefined,
  now: Date,
): Promise<FoundRun> {
  const { store } = found.log;
  const recipe = changed?.recipe ?? revision.recipe;
  const inputs = changed?.inputs ?? revision.inputs;
  const log = await claimNewId(store, { name: String(recipe.name), kind: found.record.kind, origin }, now);
  const { runId } = log;
  const pin: Pin = {
    format: recordFormat,
    runId: found.runId,
    by: runId,
    position: origin.position,
    at: now.toISOString(),
  };
  await store.create(keys.pin(found.runId, runId), encodeRecord(pin));
  if ((await store.head(keys.tombstone(found.runId))) !== undefined)
    throw new TerminalError('NotFound', `${found.runId} was deleted meanwhile`);
  const module =
    inputs.scorer?.type === 'module'
      ? (changed?.module ?? (await getBlob(store, found.runId, inputs.scorer.module)))
      : undefined;
  await writeRun(log, { recipe: { ...recipe }, inputs, ...(module && { module }), fromPosition: origin.position }, now);
  return { runId, log, record: await log.run() };
}
