/** What the command line says of a run when it ends: what it learnt, where the weights are, what to type next. */
import { runCurves, runOutcome } from '../../api/index.ts';
import type { FoundRun, RunOutcome } from '../../api/index.ts';
import { counted, showDuration, showNumber, showUsd } from '../../core/quantities.ts';
import { warningText } from '../../core/run-warnings.ts';
import type { CommandContext } from '../command.ts';
import { plot } from '../printer/plot.ts';
import { resumeCommand } from './words.ts';

/** A shorter run has no curve worth a plot. */
const iterationsToPlot = 8;
const widestPlot = 100;
const plotRows = 6;

export async function sayOutcome({ log }: Pick<FoundRun, 'log'>, context: CommandContext): Promise<RunOutcome> {
  const { outcome, text } = await outcomeText({ log }, context);
  context.printer.data(outcome, () => text);
  return outcome;
}

/** The outcome, and what is said of it: with curves, unless JSON is wanted. */
export async function outcomeText(
  { log }: Pick<FoundRun, 'log'>,
  { home, printer }: Pick<CommandContext, 'home' | 'printer'>,
): Promise<{ readonly outcome: RunOutcome; readonly text: string }> {
  const outcome = await runOutcome(log, { home });
  const columns = printer.stdout.columns;
  const curves = printer.json || outcome.iteration < iterationsToPlot ? [] : await runCurves(log);
  const plots = curves
    .filter(({ name, points }) => name === 'reward' || name === 'loss' || points.length > 2)
    .map(({ name, points }) => plot(name, points, { columns: Math.min(columns, widestPlot), rows: plotRows }));
  return { outcome, text: [...plots, summaryText(outcome)].join('\n\n') };
}

function summaryText(outcome: RunOutcome): string {
  const { runId, state, iteration, checkpoint, best, accuracy, usd, warnings } = outcome;
  const lines = [
    `${runId}: ${state} after ${counted(iteration, 'iteration')}`,
    ...(checkpoint === null ? [] : [`checkpoint: ${checkpoint}`]),
    ...(best === undefined
      ? []
      : [`best checkpoint: iteration ${best.iteration}, ${best.metric} ${showNumber(best.value)}`]),
    ...(usd === undefined ? [] : [`cost: ${showUsd(usd)}`]),
    ...warnings.map((warning) => warningText(warning, runId)),
    'next:',
    ...nextCommands(outcome).map((command) => `  ${command}`),
    'the local stack keeps running; petrel down stops it',
    ...(accuracy === null || state !== 'completed' ? [] : [accuracyLine(accuracy)]),
  ];
  return lines.join('\n');
}

/** What helps in each state. Nobody exports what learned nothing. */
function nextCommands({ runId, state, reason, best, warnings }: RunOutcome): readonly string[] {
  const resume = resumeCommand(runId, reason);
  if (state === 'failed') return [`petrel logs ${runId}`, `petrel status ${runId}`, resume];
  if (state === 'paused') return [`petrel status ${runId}`, `petrel logs ${runId}`, resume];
  if (state === 'stopped') return [resume, `petrel metrics ${runId}`];
  const look = [`petrel samples ${runId}`, `petrel metrics ${runId}`];
  return warnings.length > 0
    ? look
    : [...look, `petrel ckpt export ${runId} ${best === undefined ? '' : 'best '}--out ./trained`];
}

/** `validation accuracy 0.345 -> 0.913 in 41 s`. */
function accuracyLine({ before, after, seconds, measure }: NonNullable<RunOutcome['accuracy']>): string {
  return `validation ${measure} ${before.toFixed(3)} -> ${after.toFixed(3)} in ${showDuration(seconds)}`;
}
