/** What the command line says of a run when it ends: where the weights are, what to type next, what it learnt. */
import type { FoundRun } from '../../api/runs/find.ts';
import { outcomeOf } from '../../api/runs/outcome.ts';
import type { Outcome } from '../../api/runs/outcome.ts';
import type { RunState } from '../../core/run-states.ts';
import type { Printer } from '../printer/printer.ts';

export async function sayOutcome({ log }: Pick<FoundRun, 'log'>, printer: Printer): Promise<Outcome> {
  const outcome = await outcomeOf(log);
  printer.data(outcome, () => outcomeText(outcome));
  return outcome;
}

function outcomeText({ runId, state, iteration, checkpoint, accuracy }: Outcome): string {
  const lines = [
    `${runId}: ${state} after ${iteration} iterations`,
    ...(checkpoint === null ? [] : [`checkpoint: ${checkpoint}`]),
    `next: ${nextCommands(state)
      .map((command) => command.replace('RUN', runId))
      .join('; ')}`,
    'the local stack stays up; petrel down stops it',
    ...(accuracy === null || state !== 'completed' ? [] : [accuracyLine(accuracy)]),
  ];
  return lines.join('\n');
}

/** What helps in each state; RUN stands for the run's id. */
function nextCommands(state: RunState): readonly string[] {
  if (state === 'failed') return ['petrel logs RUN', 'petrel status RUN', 'petrel resume RUN'];
  if (state === 'paused') return ['petrel status RUN', 'petrel logs RUN', 'petrel resume RUN'];
  if (state === 'stopped') return ['petrel resume RUN', 'petrel metrics RUN'];
  return ['petrel samples RUN', 'petrel metrics RUN', 'petrel ckpt export RUN --out ./trained'];
}

/** `validation accuracy 0.34 -> 0.91 in 97 s`. */
export function accuracyLine({ before, after, seconds, measure }: NonNullable<Outcome['accuracy']>): string {
  return `validation ${measure} ${before.toFixed(2)} -> ${after.toFixed(2)} in ${Math.round(seconds)} s`;
}
