import { recipeKeys, showValue, valueOf } from '../../core/recipe/index.ts';
import type { CommandContext, CommandInput } from '../command.ts';
import { EXIT, type ExitCode } from '../exit-codes.ts';
import { untilInterrupted } from '../interrupt.ts';
import { flag, textOption, word } from '../options.ts';
import { loadRecipe, planRun, recipeErrors } from '../../api/index.ts';
import { planText } from '../plan/text.ts';

/** `petrel plan <recipe> [overrides...]`. Exit 2 when the recipe cannot be run, 8 when a check fails. */
export async function run(input: CommandInput, context: CommandContext): Promise<ExitCode> {
  const { printer, cwd } = context;
  const loaded = loadRecipe(word(input, 0), input.words.slice(1), cwd);
  const { recipe } = loaded;
  const { interrupted, value: report } = await untilInterrupted((signal) =>
    planRun(loaded, context, { measure: flag(input, 'measure'), machine: textOption(input, 'machine'), signal }),
  );
  if (interrupted || report === undefined) return EXIT.interrupted;
  const all = recipeKeys.map(({ path }) => [path, showValue(valueOf(recipe, path))] as const);
  printer.data(report, () => planText(report, flag(input, 'all') ? all : undefined, printer.stdout));
  if (report.problems.length > 0) {
    if (!printer.json) printer.error(recipeErrors(report.problems, loaded.layers));
    return EXIT.usage;
  }
  const red = report.checks.filter(({ status }) => status === 'failed');
  if (!printer.json)
    printer.notice(
      red.length === 0
        ? `\nnext: petrel run ${input.words.join(' ')}`
        : `\nnot ready: ${red.map(({ name }) => name).join(', ')}`,
    );
  return red.length === 0 ? EXIT.ok : EXIT.precheckFailed;
}
