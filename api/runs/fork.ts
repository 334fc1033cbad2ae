/**
 * Starts another run from a committed state of this one: weights, moments, steps, counters and the draws that it must
 * still skip. The fork's positions continue from there. Before its first iteration it copies the state into objects of
 * its own, so that it does not need its origin later.
 */
import { TerminalError } from '../../core/errors.ts';
import { parseRecipe, totalIterations } from '../../core/recipe/index.ts';
import type { Recipe } from '../../core/recipe/index.ts';
import { keys } from '../../core/records/keys.ts';
import { modulesOf, recordFormat } from '../../core/records/schema.ts';
import type { Pin, RevisionRecord, RunInputs, RunRecord, StatusEntry } from '../../core/records/schema.ts';
import { mergeRanges } from '../../core/rl/draws.ts';
import { getBlob, putBlob } from '../../log/objects/blobs.ts';
import { sha256 } from '../../log/objects/digest.ts';
import { writeRun } from '../../log/run/new-run.ts';
import { encodeRecord } from '../../log/objects/records.ts';
import type { RunLog } from '../../log/run/run-log.ts';
import { drivenRuns } from '../../infra/stack/driven-runs.ts';
import { chooseStack, claimName, replaceOtherBuild } from '../../infra/stack/index.ts';
import { ensureFences } from '../../infra/store/fencing.ts';
import { rememberStore } from '../../infra/store/places.ts';
import { pinPosition } from '../../log/run/retention-log.ts';
import type { ApiContext } from '../context.ts';
import { beginMetricsFile } from './metrics-file.ts';
import { changedRecipe, recipeChangeText, inAFork } from './changed-recipe.ts';
import type { ChangedRecipe } from './changed-recipe.ts';
import { driverAfterUp } from './driver.ts';
import type { FoundRun } from '../stores/find.ts';
import { claimNewId } from './start.ts';

/** Preparing a fork takes less than this time. */
const pinnedMs = 600_000;

export interface ForkRequest {
  /** The last iteration that the fork shares; default: the newest. */
  readonly from?: number | undefined;
  readonly name?: string | undefined;
  /** `key=value`, over the recipe of the run or of `recipeFile`. */
  readonly overrides?: readonly string[];
  readonly recipeFile?: string | undefined;
}

export interface Fork {
  readonly run: FoundRun;
  /** The iteration whose state the fork begins with. */
  readonly position: number;
  /** The fork's status entry when it was started; for `waitForEnd`. */
  readonly entry: StatusEntry | undefined;
}

/**
 * Starts another run from a state of this one. Throws TerminalError `NotFound` for a position that is not committed,
 * InvalidInputError for a recipe that cannot begin there.
 */
export async function forkRun(found: FoundRun, request: ForkRequest, context: ApiContext): Promise<Fork> {
  const { home, env, cwd, notice } = context;
  const { store } = found.log;
  const origin = await originAt(found, request.from);
  const revision = await revisionAfter(found.log, origin.position);
  const now = new Date();
  const overrides = [...(request.overrides ?? []), ...(request.name === undefined ? [] : [`name=${request.name}`])];
  const words = { overrides, file: request.recipeFile, cwd };
  const changed = await changedRecipe(words, revision, inAFork, { store, home, env, now, say: notice });
  for (const change of changed?.changes ?? []) notice(`  ${recipeChangeText(change)}`);
  sayNothingLeft(parseRecipe(changed?.recipe ?? revision.recipe), changed?.inputs ?? revision.inputs, origin, notice);
  await ensureFences(home, store);
  await chooseStack(home);
  await claimName(home, store);
  // The pins stay until the fork has recorded what it reads.
  const pin = { position: origin.position, why: 'a fork', forMs: pinnedMs };
  const unpin = await pinPosition(found.log, pin, () => new Date());
  const run = await createFork(found, origin, revision, changed, now);
  await unpin();
  await replaceOtherBuild({ home, onProgress: notice });
  rememberStore(home, store.url);
  await drivenRuns(home).note({ runId: run.runId, store: store.url, kind: run.record.kind });
  await beginMetricsFile(run.log, context);
  const driver = await driverAfterUp(run, context);
  try {
    const entry = await run.log.status.newest();
    await driver.start(false);
    return { run, position: origin.position, entry };
  } finally {
    await driver.close();
  }
}

/** A fork of the last iteration ends at once. */
function sayNothingLeft(
  recipe: Recipe,
  { trainRows }: RunInputs,
  { runId, position }: NonNullable<RunRecord['origin']>,
  notice: ApiContext['notice'],
): void {
  const iterations = totalIterations(recipe, trainRows);
  if (position < iterations) return;
  const longer = `petrel fork ${runId} --from ${position} trainer.total_training_steps=${position + iterations}`;
  notice(`nothing is left to do: the fork begins after iteration ${position} of ${iterations}. For more: ${longer}`);
}

/** Throws TerminalError `NotFound` for a position that is not committed. */
export async function originAt(
  { runId, log }: FoundRun,
  from: number | undefined,
): Promise<NonNullable<RunRecord['origin']>> {
  const head = await log.head();
  if (head === undefined)
    throw new TerminalError('NotFound', `${runId} has not started: it has no state to start from`, {
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
  const begun = await log.begunByStandbyAt(position);
  if (begun !== undefined && (await log.checkpoints.manifestOf(position, stateDigest)) === undefined) {
    const other = position < head.position ? position + 1 : Math.max(first, position - 1);
    throw new TerminalError(
      'NotFound',
      `no checkpoint has the state after iteration ${position} of ${runId}: a standby began term ${begun} with it`,
      { hint: `petrel fork ${runId} --from ${other}` },
    );
  }
  const skippedDraws = mergeRanges(
    (await log.chain()).flatMap(({ record }) => record.skippedDraws),
    counters.cursor,
  );
  return { runId, position, stateDigest, counters, skippedDraws };
}

/** The recipe with which the run continued from that position, so that a fork without changes repeats its numbers. */
async function revisionAfter(log: RunLog, position: number): Promise<RevisionRecord> {
  const head = await log.head();
  return log.revision(
    head === undefined || position >= head.position
      ? undefined
      : (await log.iteration(position + 1)).batch.record.revision,
  );
}

/**
 * Writes the records of the new run and starts nothing. The origin's objects of that position are pinned until the fork
 * has copied them.
 */
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
    throw new TerminalError('NotFound', `${found.runId} was deleted during the fork`);
  const fresh = new Map((changed?.modules ?? []).map((bytes) => [sha256(bytes), bytes]));
  const modules = await Promise.all(
    modulesOf(inputs).map(async (digest) => fresh.get(digest) ?? getBlob(store, found.runId, digest)),
  );
  for (const state of Object.values(origin.counters.controllers))
    if (typeof state === 'object') await putBlob(store, runId, await getBlob(store, found.runId, state.blob));
  await writeRun(log, { recipe: { ...recipe }, inputs, modules, fromPosition: origin.position }, now);
  return { runId, log, record: await log.run() };
}
