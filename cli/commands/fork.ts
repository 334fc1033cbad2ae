/** `petrel fork <run> [key=value...] [--from k]`: another run that begins with a state of this one. */
import { findRun, forkRun } from '../../api/index.ts';
import type { CommandContext, CommandInput } from '../command.ts';
import { EXIT, exitCodeOfState, type ExitCode } from '../exit-codes.ts';
import { attachAfter } from '../runs/attach.ts';
import { outcomeText } from '../runs/outcome.ts';
import { flag, integerOption, textOption, word } from '../options.ts';

export async function run(input: CommandInput, context: CommandContext): Promise<ExitCode> {
  const { printer } = context;
  const found = await findRun(word(input, 0), context, textOption(input, 'store'));
  const request = {
    from: integerOption(input, 'from', 0),
    name: textOption(input, 'name'),
    overrides: input.words.slice(1),
    recipeFile: textOption(input, 'recipe'),
  };
  const { run: fork, position, entry } = await forkRun(found, request, context);
  const answer = { runId: fork.runId, origin: found.runId, iteration: position };
  const told = `${fork.runId} begins with the state of ${found.runId} after iteration ${position}`;
  if (!flag(input, 'wait') || entry === undefined) {
    printer.data(answer, () => `${told}\nnext: petrel status ${fork.runId} --watch`);
    return EXIT.ok;
  }
  printer.notice(told);
  const state = await attachAfter(fork, entry, context);
  if (state === undefined) return EXIT.interrupted;
  const { outcome, text } = await outcomeText(fork, context);
  const { iteration, usd } = outcome;
  printer.data({ ...answer, iteration, state, ...(usd !== undefined && { usd }) }, () => text);
  return exitCodeOfState(state);
}
