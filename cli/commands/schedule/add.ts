/** `petrel schedule add <recipe>`: a run of this recipe by the clock. */
import { addSchedule, loadRecipe, recipeErrors } from '../../../api/index.ts';
import type { ScheduleSummary } from '../../../api/index.ts';
import { runIssues } from '../../../core/recipe/index.ts';
import { scheduleTiming } from '../../../core/schedules/request.ts';
import { timesWithin } from '../../../core/schedules/times.ts';
import type { CommandContext, CommandInput } from '../../command.ts';
import { flag, textOption, word } from '../../options.ts';
import { showTime } from '../../schedules/schedules-text.ts';

export async function run(input: CommandInput, context: CommandContext): Promise<undefined> {
  const { printer, cwd } = context;
  const timing = scheduleTiming(requestOf(input), new Date());
  const name = textOption(input, 'name');
  const overrides = [...input.words.slice(1), ...(name === undefined ? [] : [`name=${name}`])];
  const { recipe, layers } = loadRecipe(word(input, 0), overrides, cwd);
  const problems = runIssues(recipe);
  if (problems.length > 0) throw recipeErrors(problems, layers);
  const summary = await addSchedule({ recipe, timing, replace: flag(input, 'replace') }, context);
  printer.data(summary, () => text(summary));
  return undefined;
}

function requestOf(input: CommandInput) {
  const option = (name: string) => textOption(input, name);
  return {
    every: option('every'),
    cron: option('cron'),
    timezone: option('timezone'),
    overlap: option('overlap'),
    jitter: option('jitter'),
    until: option('until'),
    catchUp: option('catchUp'),
    backfill: option('backfill'),
  };
}

function text({ name, state, nextTimes, backfill, times }: ScheduleSummary): string {
  const past = backfill === null ? 0 : timesWithin(times, new Date(backfill.from), new Date(backfill.to), 1_000).length;
  return [
    state === 'paused'
      ? `schedule ${name} is paused, as it was`
      : `schedule ${name} starts its next run at ${showTime(nextTimes[0] ?? '')}`,
    ...(past === 0 ? [] : [`backfill: ${past} ${past === 1 ? 'run' : 'runs'}`]),
    'next:',
    ...(state === 'paused' ? [`  petrel schedule unpause ${name}`] : []),
    `  petrel schedule show ${name}`,
    `  petrel schedule trigger ${name}`,
    `  petrel schedule rm ${name}`,
  ].join('\n');
}
