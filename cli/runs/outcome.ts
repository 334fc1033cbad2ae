/** What a finished run tells its owner: where the weights are, what to type next, what it learnt. */
import type { RunLog } from '../../infra/store/run-log.ts';
import type { Printer } from '../printer/printer.ts';

export interface Outcome {
  readonly runId: string;
  readonly state: string;
  readonly iteration: number;
  readonly checkpoint: string | null;
  /** Accuracy of the first and the last validation, and the seconds between them. */
  readonly accuracy: { readonly before: number; readonly after: number; readonly seconds: number } | null;
}

export async function outcomeOf(log: RunLog): Promise<Outcome> {
  const head = await log.head();
  const [checkpoint] = await log.checkpoints();
  const evaluations = await log.evaluations();
  const first = evaluations[0];
  const last = evaluations.at(-1);
  const compared = first !== undefined && last !== undefined && last.iteration > first.iteration;
  return {
    runId: log.runId,
    state: (await log.status())?.state ?? 'queued',
    iteration: head?.position ?? 0,
    checkpoint:
      checkpoint === undefined ? null : (log.store.localPath(checkpoint.key) ?? `${log.store.url}/${checkpoint.key}`),
    accuracy: compared
      ? {
          before: first.accuracy,
          after: last.accuracy,
          seconds: (Date.parse(last.writer.at) - Date.parse(first.writer.at)) / 1000,
        }
      : null,
  };
}

export async function sayOutcome(log: RunLog, printer: Printer): Promise<Outcome> {
  const outcome = await outcomeOf(log);
  printer.data(outcome, () => outcomeText(outcome));
  return outcome;
}

function outcomeText({ runId, state, iteration, checkpoint, accuracy }: Outcome): string {
  const lines = [
    `${runId}: ${state} after ${iteration} iterations`,
    ...(checkpoint === null ? [] : [`checkpoint: ${checkpoint}`]),
    ...(state === 'paused'
      ? [`next: petrel status ${runId}; petrel logs ${runId}; petrel resume ${runId}`]
      : [`next: petrel samples ${runId}; petrel metrics ${runId}; petrel ckpt export ${runId} --out ./trained`]),
    'the local stack stays up; petrel down stops it',
    ...(accuracy === null || state !== 'completed' ? [] : [accuracyLine(accuracy)]),
  ];
  return lines.join('\n');
}

/** `validation accuracy 0.34 -> 0.91 in 97 s`. */
export function accuracyLine({ before, after, seconds }: NonNullable<Outcome['accuracy']>): string {
  return `validation accuracy ${before.toFixed(2)} -> ${after.toFixed(2)} in ${Math.round(seconds)} s`;
}
