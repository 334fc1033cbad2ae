/** `petrel resume <run> [--from k] [--accept] [--wait]`: go on with a run that is paused, stopped or failed, or whose driver is gone. */
import { InvalidInputError, TerminalError } from '../../core/errors.ts';
import { petrelHome } from '../../infra/home.ts';
import { stackName } from '../../infra/stack/index.ts';
import { openNextTerm } from '../../infra/store/terms.ts';
import type { CommandContext, CommandInput } from '../command.ts';
import { confirmed } from '../confirm.ts';
import { EXIT, exitCodeOfState, type ExitCode } from '../exit-codes.ts';
import { flag, integerOption, word } from '../options.ts';
import { driverAfterUp } from '../runs/driver.ts';
import type { RunDriver } from '../runs/driver.ts';
import { findRun } from '../runs/find.ts';
import type { FoundRun } from '../runs/find.ts';
import { planTerm, showPlan } from '../runs/next-term.ts';
import type { TermPlan, TermWish } from '../runs/next-term.ts';
import { checkProfile } from '../runs/profile-check.ts';
import { skipBatch } from '../runs/skip.ts';
import { waitForEnd } from '../runs/wait.ts';
import { refuseResume, resume } from '../runs/wishes.ts';

export async function run(input: CommandInput, context: CommandContext): Promise<ExitCode> {
  const { printer, env } = context;
  const found = await findRun(word(input, 0), context);
  const wish = termWish(input, stackName(petrelHome(env)));
  const status = await found.log.status();
  refuseResume(found, status, wish);
  const plan = await planTerm(found, status, wish);
  if (plan !== undefined && !(await accepted(found, plan, input, context))) return EXIT.interrupted;
  if (flag(input, 'skip')) printer.notice(await skipBatch(found));
  const driver = await driverAfterUp(found, petrelHome(env), printer);
  try {
    await refuseRunning(found, plan, wish, driver);
    if (plan !== undefined) await openTerm(found, plan, wish, driver);
    return await goOn(found, plan, driver, input, context);
  } finally {
    await driver.close();
  }
}

function termWish(input: CommandInput, owner: string): TermWish {
  const [override] = input.words.slice(1);
  if (override !== undefined) throw new TerminalError('NotBuilt', `resume with a changed recipe (${override}) is not built yet`, { hint: 'petrel resume <run> goes on with the recipe as it is' });
  const from = integerOption(input, 'from', 0);
  const skipDraws = flag(input, 'skipDraws');
  if (skipDraws && from === undefined) throw new InvalidInputError('--skip-draws belongs to --from: the draws of the iterations that are given up are not used again');
  return { owner, from, skipDraws, changed: undefined };
}

/** Shows what the new term means. True when nobody needs to be asked, or the answer is yes. */
async function accepted(found: FoundRun, plan: TermPlan, input: CommandInput, context: CommandContext): Promise<boolean> {
  showPlan(found, plan, context.printer);
  if (plan.concerns.length === 0) return true;
  if (await confirmed(`${plan.concerns.join('; ')}. Go on?`, input, context, 'accept')) return true;
  context.printer.notice('nothing was done');
  return false;
}

/** A new term is opened for a run at rest; whoever wants more than that stops it first. */
async function refuseRunning({ runId, log }: FoundRun, plan: TermPlan | undefined, { owner }: TermWish, driver: RunDriver): Promise<void> {
  const [status, head] = [await log.status(), await log.head()];
  const here = head === undefined || head.termRecord.owner === owner;
  if (!here || status?.state === 'paused' || (await driver.workflow()) === 'ended') return;
  if (plan !== undefined) throw new TerminalError('Conflict', `${runId} is at work here (${status?.state ?? 'queued'}, iteration ${head?.position ?? 0})`, { hint: `petrel stop ${runId} --wait, then resume it` });
  if (status?.state !== 'running' || status.wish !== 'run') return;
  throw new TerminalError('Conflict', `${runId} runs already: driven by ${owner}, iteration ${head?.position ?? 0}`, { hint: `petrel status ${runId} --watch` });
}

async function openTerm({ runId, log }: FoundRun, { head, position, reason }: TermPlan, { owner, from, skipDraws }: TermWish, driver: RunDriver): Promise<void> {
  await checkProfile(runId, head.termRecord.profile, driver.stack);
  const writer = { process: `petrel-${process.pid}`, at: new Date().toISOString() };
  await openNextTerm(log, { after: head.term, ...(from === undefined ? {} : { position }), skipDraws, owner, reason, writer });
}

async function goOn(found: FoundRun, plan: TermPlan | undefined, driver: RunDriver, input: CommandInput, { printer }: CommandContext): Promise<ExitCode> {
  const { runId, log } = found;
  const entry = await resume(found, driver, new Date());
  const head = await log.head();
  const answer = { runId, iteration: head?.position ?? 0, term: head?.term ?? 0, ...(plan === undefined ? {} : { reason: plan.reason, abandoned: plan.abandoned }) };
  if (!flag(input, 'wait')) {
    printer.data(answer, () => `${runId} goes on after iteration ${answer.iteration}\nnext: petrel status ${runId} --watch`);
    return EXIT.ok;
  }
  printer.notice(`${runId} goes on after iteration ${answer.iteration}`);
  const state = (await waitForEnd(log, entry, driver.ended())) ?? 'running';
  printer.data({ ...answer, iteration: (await log.head())?.position ?? 0, state }, () => `${runId} is ${state}`);
  return exitCodeOfState(state);
}
