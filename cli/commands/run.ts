/** `petrel run <recipe> [overrides...]`: start a run and show its progress. Ctrl-C leaves it going. */
import { recipeErrors } from '../../api/recipes/recipe-issues.ts';
import { loadRecipe } from '../../api/recipes/recipe-file.ts';
import type { RunLog } from '../../api/runs/find.ts';
import { followRun } from '../../api/runs/follow.ts';
import { startRun } from '../../api/runs/start.ts';
import { runIssues } from '../../core/recipe/index.ts';
import type { RunState } from '../../core/run-states.ts';
import type { CommandContext, CommandInput } from '../command.ts';
import { EXIT, exitCodeOfState } from '../exit-codes.ts';
import type { ExitCode } from '../exit-codes.ts';
import { untilInterrupted } from '../interrupt.ts';
import { flag, textOption, word } from '../options.ts';
import { createLiveDisplay } from '../printer/live-display.ts';
import { sayOutcome } from '../runs/outcome.ts';

export async function run(input: CommandInput, context: CommandContext): Promise<ExitCode> {
  const { printer, cwd } = context;
  const name = textOption(input, 'name');
  const overrides = [...input.words.slice(1), ...(name === undefined ? [] : [`name=${name}`])];
  const { recipe, layers } = loadRecipe(word(input, 0), overrides, cwd);
  const problems = runIssues(recipe);
  if (problems.length > 0) throw recipeErrors(problems, layers);

  const { runId, log } = await startRun(recipe, context);
  if (!flag(input, 'detach')) return follow(log, context, flag(input, 'wait'));
  printer.data({ runId }, () => runId);
  return EXIT.ok;
}

/** `stay`: until the run ends or pauses, and leave with a code that tells which. */
async function follow(log: RunLog, context: CommandContext, stay: boolean): Promise<ExitCode> {
  const { printer } = context;
  const display = createLiveDisplay(printer, Date.now);
  const paused = new AbortController();
  const { interrupted } = await untilInterrupted(async (signal) => {
    await followRun(log, context, {
      signal: AbortSignal.any([signal, paused.signal]),
      onProgress: (progress) => display.update(progress),
      onState: (state, reason) => {
        if (state === 'paused' || state === 'failed') display.note(stateLine(log.runId, state, reason));
        if (state === 'paused' && stay) paused.abort();
      },
    });
  });
  display.end();
  if (interrupted) {
    printer.notice(
      `${log.runId} continues. Follow it: petrel status ${log.runId} --watch; stop it: petrel stop ${log.runId}`,
    );
    return stay ? EXIT.interrupted : EXIT.ok;
  }
  const { state } = await sayOutcome({ log }, printer);
  return stay || state !== 'completed' ? exitCodeOfState(state) : EXIT.ok;
}

const stateLine = (runId: string, state: RunState, reason: string): string =>
  `${runId} is ${state}${reason === '' ? '' : `: ${reason}`}${state === 'paused' ? `\npetrel resume ${runId} continues it` : ''}`;
