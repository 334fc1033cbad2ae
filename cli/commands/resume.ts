/**
 * `petrel resume <run> [key=value...] [--from k] [--accept] [--wait]`: go on with a run that is paused, stopped or failed,
 * whose driver is gone, or that another stack drives.
 */
import { InvalidInputError, TerminalError } from '../../core/errors.ts';
import { keys } from '../../core/records/keys.ts';
import { recordFormat } from '../../core/records/schema.ts';
import type { RevisionRecord } from '../../core/records/schema.ts';
import { petrelHome } from '../../infra/home.ts';
import { stackName } from '../../infra/stack/index.ts';
import { fullPlaces } from '../../infra/store/admission.ts';
import { putBlob } from '../../infra/store/blobs.ts';
import { pinPosition } from '../../infra/retention/entries.ts';
import { endSweep } from '../../infra/retention/strays.ts';
import { ensureFences } from '../../infra/store/fencing.ts';
import { rememberStore } from '../../infra/store/places.ts';
import { encodeRecord } from '../../infra/store/records.ts';
import { openNextTerm } from '../../infra/store/terms.ts';
import type { CommandContext, CommandInput } from '../command.ts';
import { confirmed } from '../confirm.ts';
import { EXIT, exitCodeOfState, type ExitCode } from '../exit-codes.ts';
import { flag, integerOption, textOption, word } from '../options.ts';
import { changedRecipe, inTheSameRun } from '../runs/changed-recipe.ts';
import type { ChangedRecipe } from '../runs/changed-recipe.ts';
import { driverAfterUp, driverIfUp } from '../runs/driver.ts';
import type { RunDriver } from '../runs/driver.ts';
import { findRun } from '../runs/find.ts';
import type { FoundRun } from '../runs/find.ts';
import { planTerm, showPlan } from '../runs/next-term.ts';
import type { TermPlan, TermWish } from '../runs/next-term.ts';
import { checkProfile } from '../runs/profile-check.ts';
import { skipBatch } from '../runs/skip.ts';
import { endedStates } from '../runs/summary.ts';
import { waitForEnd } from '../runs/wait.ts';
import { refuseResume, resume } from '../runs/wishes.ts';

/** Opening a term takes no longer. */
const pinnedMs = 600_000;

export async function run(input: CommandInput, context: CommandContext): Promise<ExitCode> {
  const { printer, env } = context;
  const store = textOption(input, 'store');
  const found = await findRun(word(input, 0), context, store);
  const wish = await termWish(found, input, context);
  for (const { message } of await fullPlaces([found.log.store], petrelHome(env)))
    printer.notice(`${message}: it would pause again`);
  const status = await found.log.status();
  refuseResume(found, status, wish);
  const plan = await planTerm(found, status, wish);
  if (plan !== undefined) await refuseIfAtWork(found, plan, wish, petrelHome(env));
  if (plan !== undefined && !(await accepted(found, plan, input, context))) return EXIT.interrupted;
  if (flag(input, 'skip')) printer.notice(await skipBatch(found));
  if (store !== undefined) {
    await ensureFences(petrelHome(env), found.log.store);
    rememberStore(petrelHome(env), found.log.store.url);
  }
  const driver = await driverAfterUp(found, petrelHome(env), printer);
  try {
    await refuseRunning(found, plan, wish, driver);
    if (plan !== undefined) await openTerm(found, plan, wish, driver);
    return await goOn(found, plan, driver, input, context);
  } finally {
    await driver.close();
  }
}

async function termWish(found: FoundRun, input: CommandInput, context: CommandContext): Promise<TermWish> {
  const owner = stackName(petrelHome(context.env));
  const from = integerOption(input, 'from', 0);
  const skipDraws = flag(input, 'skipDraws');
  if (skipDraws && from === undefined)
    throw new InvalidInputError(
      '--skip-draws belongs to --from: the draws of the iterations that are given up are not used again',
    );
  if (flag(input, 'skip') && from !== undefined)
    throw new InvalidInputError('--skip leaves out the batch that waits; --from gives it up anyway: one of them');
  return { owner, from, skipDraws, changed: await changesOf(found, input, context) };
}

async function changesOf(
  { log }: FoundRun,
  input: CommandInput,
  { printer, env, cwd }: CommandContext,
): Promise<ChangedRecipe | undefined> {
  const words = { overrides: input.words.slice(1), file: textOption(input, 'recipe'), cwd };
  if (words.overrides.length === 0 && words.file === undefined) return undefined;
  const ports = {
    store: log.store,
    home: petrelHome(env),
    env,
    now: new Date(),
    say: (text: string) => printer.notice(text),
  };
  const changed = await changedRecipe(words, await log.revision(), inTheSameRun, ports);
  if (changed === undefined) printer.notice('the recipe is the one that the run has');
  for (const note of changed?.notes ?? []) printer.notice(note);
  return changed;
}

/** Shows what the new term means. True when nobody needs to be asked, or the answer is yes. */
async function accepted(
  found: FoundRun,
  plan: TermPlan,
  input: CommandInput,
  context: CommandContext,
): Promise<boolean> {
  showPlan(found, plan, context.printer);
  if (plan.concerns.length === 0) return true;
  if (await confirmed(`${plan.concerns.join('; ')}. Go on?`, input, context, 'accept')) return true;
  context.printer.notice('nothing was done');
  return false;
}

/** Before the plan is shown and anybody is asked. With the stack down it is asked once it is up. */
async function refuseIfAtWork(found: FoundRun, plan: TermPlan, wish: TermWish, home: string): Promise<void> {
  const driver = await driverIfUp(found, home);
  try {
    if (driver !== undefined) await refuseRunning(found, plan, wish, driver);
  } finally {
    await driver?.close();
  }
}

/** A new term is opened for a run at rest; whoever wants more than that stops it first. */
async function refuseRunning(
  { runId, log }: FoundRun,
  plan: TermPlan | undefined,
  { owner }: TermWish,
  driver: RunDriver,
): Promise<void> {
  const [status, head] = [await log.status(), await log.head()];
  const here = head === undefined || head.termRecord.owner === owner;
  // A workflow that has told its last state is about to end; the new one is started after it.
  const atRest = status !== undefined && (status.state === 'paused' || endedStates.has(status.state));
  if (!here || atRest || (await driver.workflow()) === 'ended') return;
  if (plan !== undefined)
    throw new TerminalError(
      'Conflict',
      `${runId} is at work here (${status?.state ?? 'queued'}, iteration ${head?.position ?? 0})`,
      { hint: `petrel stop ${runId} --wait, then resume it` },
    );
  if (status?.state !== 'running' || status.wish !== 'run') return;
  throw new TerminalError('Conflict', `${runId} runs already: driven by ${owner}, iteration ${head?.position ?? 0}`, {
    hint: `petrel status ${runId} --watch`,
  });
}

async function openTerm(
  found: FoundRun,
  { head, position, reason }: TermPlan,
  { owner, from, skipDraws, changed }: TermWish,
  driver: RunDriver,
): Promise<void> {
  await checkProfile(found.runId, head.termRecord.profile, driver.stack);
  const now = new Date().toISOString();
  // What leads to the position stays until the log ends there.
  const unpin =
    from === undefined
      ? undefined
      : await pinPosition(found.log, { position, why: reason, forMs: pinnedMs }, () => new Date());
  const revised = changed && {
    revision: await writeRevision(found, changed, position, now),
    maxTokensPerMicroBatch: changed.recipe.actor.ppo_max_token_len_per_gpu,
  };
  await openNextTerm(found.log, {
    after: head.term,
    ...(from === undefined ? {} : { position }),
    ...revised,
    skipDraws,
    owner,
    reason,
    writer: { process: `petrel-${process.pid}`, at: now },
  });
  await unpin?.();
}

/** A revision counts once a term names it: two that are written at once do not hurt each other. */
async function writeRevision(
  { runId, log }: FoundRun,
  { recipe, inputs, module }: ChangedRecipe,
  fromPosition: number,
  createdAt: string,
): Promise<number> {
  // A janitor may have taken the module of an earlier try, which no record names yet, for a stray.
  await endSweep(log, new Date());
  if (module !== undefined) await putBlob(log.store, runId, module);
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

async function goOn(
  found: FoundRun,
  plan: TermPlan | undefined,
  driver: RunDriver,
  input: CommandInput,
  { printer }: CommandContext,
): Promise<ExitCode> {
  const { runId, log } = found;
  const entry = await resume(found, driver, new Date());
  const head = await log.head();
  const answer = {
    runId,
    iteration: head?.position ?? 0,
    term: head?.term ?? 0,
    ...(plan === undefined ? {} : { reason: plan.reason, abandoned: plan.abandoned }),
  };
  if (!flag(input, 'wait')) {
    printer.data(
      answer,
      () => `${runId} goes on after iteration ${answer.iteration}\nnext: petrel status ${runId} --watch`,
    );
    return EXIT.ok;
  }
  printer.notice(`${runId} goes on after iteration ${answer.iteration}`);
  const state = (await waitForEnd(log, entry, driver.ended())) ?? 'running';
  printer.data({ ...answer, iteration: (await log.head())?.position ?? 0, state }, () => `${runId} is ${state}`);
  return exitCodeOfState(state);
}
