/** `petrel run <recipe> [overrides...]`: start a run and show its progress. Ctrl-C leaves it going. */
import { loadRecipe, recipeErrors, startRun } from '../../api/index.ts';
import { runIssues } from '../../core/recipe/index.ts';
import type { CommandContext, CommandInput } from '../command.ts';
import { EXIT } from '../exit-codes.ts';
import type { ExitCode } from '../exit-codes.ts';
import { flag, textOption, word } from '../options.ts';
import { attach } from '../runs/attach.ts';

export async function run(input: CommandInput, context: CommandContext): Promise<ExitCode> {
  const { printer, cwd } = context;
  const name = textOption(input, 'name');
  const overrides = [...input.words.slice(1), ...(name === undefined ? [] : [`name=${name}`])];
  const { recipe, layers } = loadRecipe(word(input, 0), overrides, cwd);
  const problems = runIssues(recipe);
  if (problems.length > 0) throw recipeErrors(problems, layers);

  const { runId, log } = await startRun(recipe, context);
  if (!flag(input, 'detach')) return attach(log, context, flag(input, 'wait'));
  // Where both streams are a terminal, the line before names the run. A script reads the id from stdout.
  const isSaid = printer.stdout.isTty && printer.stderr.isTty;
  printer.data({ runId }, () => (isSaid ? `next: petrel status ${runId} --watch` : runId));
  return EXIT.ok;
}
