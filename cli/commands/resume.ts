/**
 * `petrel resume <run> [key=value...] [--from k] [--accept] [--wait]`: continue a run that is paused, stopped or
 * failed, whose workflow is gone, or that another stack drives.
 */
import { findRun, resumeRun } from '../../api/index.ts';
import type { FoundRun, TermPlan } from '../../api/index.ts';
import type { CommandContext, CommandInput } from '../command.ts';
import { confirmed } from '../confirm.ts';
import { EXIT, exitCodeOfState, type ExitCode } from '../exit-codes.ts';
import { flag, integerOption, textOption, word } from '../options.ts';
import { attachAfter } from '../runs/attach.ts';
import { outcomeText } from '../runs/outcome.ts';
import { showPlan } from '../runs/term-plan.ts';

export async function run(input: CommandInput, context: CommandContext): Promise<ExitCode> {
  const { printer } = context;
  const store = textOption(input, 'store');
  const found = await findRun(word(input, 0), context, store);
  const request = {
    from: integerOption(input, 'from', 0),
    skipDraws: flag(input, 'skipDraws'),
    skipBatch: flag(input, 'skip'),
    overrides: input.words.slice(1),
    recipeFile: textOption(input, 'recipe'),
    newStore: store !== undefined,
    accept: (plan: TermPlan) => accepted(found, plan, input, context),
  };
  const resumed = await resumeRun(found, request, context);
  if (resumed === undefined) return EXIT.interrupted;

  const { runId, log } = found;
  const { plan, entry } = resumed;
  const head = await log.head();
  const answer = {
    runId,
    iteration: head?.position ?? 0,
    term: head?.term ?? 0,
    ...(plan === undefined ? {} : { reason: plan.reason, abandoned: plan.abandoned }),
  };
  const told = `${runId} continues after iteration ${answer.iteration}`;
  if (!flag(input, 'wait')) {
    printer.data(answer, () => `${told}\nnext: petrel status ${runId} --watch`);
    return EXIT.ok;
  }
  printer.notice(told);
  const state = await attachAfter(found, entry, context);
  if (state === undefined) return EXIT.interrupted;
  const { outcome, text } = await outcomeText({ log }, context);
  const { iteration, usd } = outcome;
  printer.data({ ...answer, iteration, state, ...(usd !== undefined && { usd }) }, () => text);
  return exitCodeOfState(state);
}

/** Shows what the new term means. True when no confirmation is needed, or when the user confirms. */
async function accepted(
  found: FoundRun,
  plan: TermPlan,
  input: CommandInput,
  context: CommandContext,
): Promise<boolean> {
  showPlan(found, plan, context.printer);
  if (plan.concerns.length === 0) return true;
  if (await confirmed(`${plan.concerns.join('; ')}. Continue?`, input, context, 'accept')) return true;
  context.printer.notice('nothing was done');
  return false;
}
