/**
 * Continues a run that is paused, stopped or failed, that lost its workflow, or that another stack drives. It continues
 * from its end or from an earlier iteration, with its own recipe or a changed one.
 */
import { tokensOfPass } from '../../core/recipe/pass.ts';
import { join } from 'node:path';
import { InvalidInputError, TerminalError } from '../../core/errors.ts';
import { keys } from '../../core/records/keys.ts';
import { recordFormat } from '../../core/records/schema.ts';
import type { RevisionRecord, StatusEntry } from '../../core/records/schema.ts';
import { endedStates } from '../../core/run-states.ts';
import { endSweep } from '../../log/retention/orphans.ts';
import { chooseStack, claimName, stackName } from '../../infra/stack/index.ts';
import { modelFolder } from '../../log/inputs/model-facts.ts';
import { putBlob } from '../../log/objects/blobs.ts';
import { ensureFences } from '../../infra/store/fencing.ts';
import { rememberStore } from '../../infra/store/places.ts';
import { encodeRecord } from '../../log/objects/records.ts';
import { pinPosition } from '../../log/run/retention-log.ts';
import type { Head } from '../../log/run/run-log.ts';
import { openNextTerm } from '../../log/run/terms.ts';
import type { EngineChange } from '../../log/run/terms.ts';
import { parseStoredRecipe } from '../../core/recipe/index.ts';
import { checkEngines } from '../checks/engine-check.ts';
import { askServer } from '../checks/sampling-server-check.ts';
import type { ApiContext } from '../context.ts';
import { fullDisks } from '../stack.ts';
import { beginMetricsFile } from './metrics-file.ts';
import { arithmeticPaths, changedRecipe, inTheSameRun } from './changed-recipe.ts';
import type { ChangedRecipe } from './changed-recipe.ts';
import { refuseResume, resume } from './desired-state.ts';
import { driverAfterUp, driverIfUp } from './driver.ts';
import type { RunDriver } from './driver.ts';
import {
  chosenArithmetic,
  engineChange,
  engineTermPlan,
  engineText,
  otherArithmetic,
  refuseLongerShares,
} from './engine-term.ts';
import type { FoundRun } from '../stores/find.ts';
import { planTerm } from './next-term.ts';
import type { TermPlan, TermRequest } from './next-term.ts';
import { skipBatch } from './skip.ts';
import { readyTrainers } from './trainers.ts';

/** A change of these needs workers that have the engine, and an engine that knows the model. */
const enginePaths: ReadonlySet<string> = new Set(['rollout.name', ...arithmeticPaths]);

/** Opening a term takes less than this time. */
const pinnedMs = 600_000;

export interface ResumeRequest {
  /** The last iteration that remains valid; default: all remain. */
  readonly from?: number | undefined;
  /** The new iterations use none of the abandoned iterations' draws; only with `from`. */
  readonly skipDraws?: boolean;
  /** Skips the batch that waits for its update. */
  readonly skipBatch?: boolean;
  /** `key=value`, over the recipe of the run or of `recipeFile`. */
  readonly overrides?: readonly string[];
  readonly recipeFile?: string | undefined;
  /** The store that the run was found in, if it is new to this machine: the machine remembers it. */
  readonly newStore?: boolean;
  /** Called before a new term is opened. False: nothing is done. Default: accept. */
  readonly accept?: (plan: TermPlan) => Promise<boolean>;
}

export interface Resumed {
  /** The new term, when one was opened. */
  readonly plan: TermPlan | undefined;
  /** The run's status entry when it was resumed; for `waitUntilEnd`. */
  readonly entry: StatusEntry;
}

/** Resolves with undefined when `accept` returned false. Throws TerminalError `Conflict` for a run that is active. */
export async function resumeRun(
  found: FoundRun,
  request: ResumeRequest,
  context: ApiContext,
): Promise<Resumed | undefined> {
  const { home, notice } = context;
  await chooseStack(home);
  const wanted = await termRequest(found, request, context);
  for (const text of await fullDisks(context, found)) notice(`${text}: it would pause again`);
  const status = await found.log.status.newest();
  refuseResume(found, status, wanted);
  const plan = await planTerm(found, status, wanted);
  if (plan !== undefined) await refuseIfAtWork(found, plan, wanted, home);
  await requireServer(found, wanted, context);
  if (plan !== undefined && (await request.accept?.(plan)) === false) return undefined;
  await claimName(home, found.log.store);
  if (request.newStore === true) {
    await ensureFences(home, found.log.store);
    rememberStore(home, found.log.store.url);
  }
  const driver = await driverAfterUp(found, context);
  try {
    const engine = await engineOf(found, wanted, driver, context);
    if (engine === undefined || plan !== undefined) await refuseRunning(found, plan, wanted, driver);
    if (request.skipBatch === true) notice(await skipBatch(found));
    const opened = engine === undefined ? plan : engineTermPlan(plan, engine.head);
    if (opened !== undefined) await openTerm(found, opened, wanted, engine?.change);
    // A workflow that waits for a trainer with the old arithmetic would wait for ever.
    if (engine !== undefined) await driver.end('its term has another arithmetic');
    const entry = await resume(found, driver, new Date());
    await beginMetricsFile(found.log, context);
    return { plan: opened, entry };
  } finally {
    await driver.close();
  }
}

async function termRequest(found: FoundRun, request: ResumeRequest, context: ApiContext): Promise<TermRequest> {
  const { from, skipDraws = false } = request;
  if (skipDraws && from === undefined)
    throw new InvalidInputError(
      '--skip-draws belongs to --from: the draws of the abandoned iterations are not used again',
    );
  if (request.skipBatch === true && from !== undefined)
    throw new InvalidInputError('expected --skip or --from, got both: --from discards the waiting batch, too');
  return { owner: stackName(context.home), from, skipDraws, changed: await changesOf(found, request, context) };
}

async function changesOf(
  { log }: FoundRun,
  { overrides = [], recipeFile }: ResumeRequest,
  { home, env, cwd, notice }: ApiContext,
): Promise<ChangedRecipe | undefined> {
  if (overrides.length === 0 && recipeFile === undefined) return undefined;
  const words = { overrides, file: recipeFile, cwd };
  const ports = { store: log.store, home, env, now: new Date(), say: notice };
  const changed = await changedRecipe(words, await log.revision(), inTheSameRun, ports);
  if (changed === undefined) notice('the recipe is the same as before');
  for (const note of changed?.notes ?? []) notice(note);
  if (changed?.changes.some(({ path }) => enginePaths.has(path)) === true) {
    const { reference, model } = changed.inputs;
    const folder = await modelFolder(log.store, reference ?? model, join(home, 'cache'), 'text');
    await checkEngines(changed.recipe, folder, home);
  }
  return changed;
}

/** A server that samples must suit the run when it goes on, as it must when it starts. */
async function requireServer({ log }: FoundRun, { changed }: TermRequest, { home, env }: ApiContext): Promise<void> {
  const revision = await log.revision();
  const recipe = changed?.recipe ?? parseStoredRecipe(revision.recipe);
  const { reference, model } = changed?.inputs ?? revision.inputs;
  await askServer(recipe, env, () => modelFolder(log.store, reference ?? model, join(home, 'cache'), 'text'));
}

/**
 * Checks this before the plan is shown and the user is asked. With the stack down it is checked once the stack is up.
 */
async function refuseIfAtWork(found: FoundRun, plan: TermPlan, wanted: TermRequest, home: string): Promise<void> {
  const driver = await driverIfUp(found, home);
  try {
    if (driver !== undefined) await refuseRunning(found, plan, wanted, driver);
  } finally {
    await driver?.close();
  }
}

/** A new term is opened only for a run that is not running. The user must stop a running run first. */
async function refuseRunning(
  { runId, log }: FoundRun,
  plan: TermPlan | undefined,
  { owner }: TermRequest,
  driver: RunDriver,
): Promise<void> {
  const [status, head] = [await log.status.newest(), await log.head()];
  const here = head === undefined || head.termRecord.owner === owner;
  // A workflow that has recorded its last state is about to end. The new one is started after that.
  const atRest = status !== undefined && (status.state === 'paused' || endedStates.has(status.state));
  if (!here || atRest || (await driver.workflow()) === 'ended') return;
  if (plan !== undefined)
    throw new TerminalError(
      'Conflict',
      `${runId} is running on this stack (${status?.state ?? 'queued'}, iteration ${head?.position ?? 0})`,
      { hint: `petrel stop ${runId} --wait, then resume it` },
    );
  if (status?.state !== 'running' || status.wish !== 'run') return;
  throw new TerminalError(
    'Conflict',
    `${runId} is running already: controlled by ${owner}, iteration ${head?.position ?? 0}`,
    {
      hint: `petrel status ${runId} --watch`,
    },
  );
}

/** Another arithmetic with which the run continues, if it does. Reports the change. */
async function engineOf(
  { log }: FoundRun,
  { from, changed }: TermRequest,
  driver: RunDriver,
  { notice }: ApiContext,
): Promise<{ readonly head: Head; readonly change: EngineChange } | undefined> {
  const head = await log.head();
  if (head === undefined) return undefined;
  const trainers = await readyTrainers(driver.stack);
  const chosen = changed && chosenArithmetic(head.profile, changed.recipe.trainer, trainers);
  const profile = chosen ?? otherArithmetic(head.profile, trainers);
  if (profile === undefined) return undefined;
  const change = await engineChange(log, profile, from ?? head.position, notice);
  refuseLongerShares(head, change, from);
  notice(engineText(head, change, from));
  return { head, change };
}

async function openTerm(
  found: FoundRun,
  { head, position, reason }: TermPlan,
  { owner, from, skipDraws, changed }: TermRequest,
  engine: EngineChange | undefined,
): Promise<void> {
  const now = new Date().toISOString();
  // The objects that lead to the position are pinned until the new term is the end of the log.
  const unpin =
    from === undefined
      ? undefined
      : await pinPosition(found.log, { position, why: reason, forMs: pinnedMs }, () => new Date());
  const revised = changed && {
    revision: await writeRevision(found, changed, position, now),
    maxTokensPerMicroBatch: tokensOfPass(changed.recipe),
  };
  await openNextTerm(found.log, {
    after: head.term,
    ...(from === undefined ? {} : { position }),
    ...revised,
    ...(engine === undefined ? {} : { engine }),
    skipDraws,
    owner,
    reason,
    writer: { process: `petrel-${process.pid}`, at: now },
  });
  await unpin?.();
}

/** A revision has an effect only when a term names it, so two revisions that are written at once do no harm. */
async function writeRevision(
  { runId, log }: FoundRun,
  { recipe, inputs, modules }: ChangedRecipe,
  fromPosition: number,
  createdAt: string,
): Promise<number> {
  // The janitor may have removed a module of an earlier attempt as an orphaned blob, because no record names it yet.
  await endSweep(log, new Date());
  for (const module of modules) await putBlob(log.store, runId, module);
  for (let n = (await log.newestRevision()) + 1; ; n++) {
    const record: RevisionRecord = {
      format: recordFormat,
      runId,
      revision: n,
      fromPosition,
      recipe: { ...recipe },
      inputs,
      createdAt,
    };
    if ((await log.store.create(keys.revision(runId, n), encodeRecord(record))) === 'created') return n;
  }
}
