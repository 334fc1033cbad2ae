/** The result of a run: where its weights are, and what it learnt. */
import type { RunWarning } from '../../core/run-warnings.ts';
import type { StatusEntry } from '../../core/records/schema.ts';
import type { RunState } from '../../core/run-states.ts';
import { measureOf } from '../../core/validation-measure.ts';
import type { ValidationMeasure } from '../../core/validation-measure.ts';
import { bestCheckpoint } from '../../log/run/best-checkpoint.ts';
import type { RunLog } from '../../log/run/run-log.ts';
import type { ApiContext } from '../context.ts';
import { RunCost } from '../fleet/run-cost.ts';
import { runWarnings } from './warnings.ts';

export interface RunOutcome {
  readonly runId: string;
  readonly state: RunState;
  /** Why it paused or failed. */
  readonly reason?: NonNullable<StatusEntry['reason']>;
  readonly iteration: number;
  /** Path or URL of the newest checkpoint's manifest. */
  readonly checkpoint: string | null;
  /** The best checkpoint by `trainer.best_metric`; absent where the recipe names none. */
  readonly best?: { readonly iteration: number; readonly metric: string; readonly value: number };
  /** Warnings about its last iterations. */
  readonly warnings: readonly RunWarning[];
  /** What bought instances have cost for it; absent where nothing was. */
  readonly usd?: number;
  /** The first and the last validation, the seconds between them, and which metric it is. */
  readonly accuracy: {
    readonly before: number;
    readonly after: number;
    readonly seconds: number;
    readonly measure: ValidationMeasure;
  } | null;
}

export async function runOutcome(log: RunLog, context: Pick<ApiContext, 'home'>): Promise<RunOutcome> {
  const head = await log.head();
  const checkpoint = await log.checkpoints.newest();
  const [first, last] =
    head === undefined ? [] : [await log.evaluations.first(head), await log.evaluations.newest(head)];
  const compared = first !== undefined && last !== undefined && last.iteration > first.iteration;
  const best = await bestCheckpoint(log);
  const { state = 'queued', reason } = (await log.status.newest()) ?? {};
  // The run has its outcome even while the store of the fleet does not answer.
  const usd = (await new RunCost(context, log.runId).usd().catch(() => undefined)) ?? 0;
  return {
    runId: log.runId,
    state,
    ...(reason && { reason }),
    iteration: head?.position ?? 0,
    ...(best && { best: { iteration: best.iteration, metric: best.metric, value: best.value } }),
    warnings: await runWarnings(log, head),
    ...(usd > 0 && { usd }),
    checkpoint:
      checkpoint === undefined ? null : (log.store.localPath(checkpoint.key) ?? `${log.store.url}/${checkpoint.key}`),
    accuracy: compared
      ? {
          before: first.accuracy,
          after: last.accuracy,
          measure: measureOf(last.metrics),
          seconds: (Date.parse(last.writer.at) - Date.parse(first.writer.at)) / 1000,
        }
      : null,
  };
}
