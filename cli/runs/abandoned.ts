/** What a run gives up when it goes on from an earlier iteration. */
import type { Printer } from '../printer/printer.ts';
import { showNumber } from '../printer/quantities.ts';
import { renderTable } from '../printer/table.ts';
import type { Head, RunLog } from '../../infra/store/run-log.ts';

export interface AbandonedIteration {
  readonly iteration: number;
  readonly reward: number | null;
  readonly loss: number | null;
  readonly accuracy: number | null;
  /** It had a checkpoint that nothing reaches any more. */
  readonly checkpoint: boolean;
  /** False: its batch is there, and was not applied. */
  readonly applied: boolean;
}

/** Ascending: the committed iterations after `position`, and a batch that waits for its update. */
export async function abandonedAfter(log: RunLog, head: Head, position: number): Promise<AbandonedIteration[]> {
  const accuracies = new Map((await log.evaluations()).map(({ iteration, accuracy }) => [iteration, accuracy]));
  const saved = new Set((await log.checkpointNames()).map(({ iteration }) => iteration));
  const found: AbandonedIteration[] = [];
  for await (const { batch, update } of log.iterations(position + 1)) {
    const k = update.record.iteration;
    const sft = batch.record.loss.kind === 'sft';
    const [reward, loss] = [
      finite(batch.record.metrics['critic/score/mean']),
      sft ? finite(update.record.metrics['actor/loss']) : null,
    ];
    found.push({
      iteration: k,
      reward,
      loss,
      accuracy: accuracies.get(k) ?? null,
      checkpoint: saved.has(k),
      applied: true,
    });
  }
  if (head.pending !== undefined && head.seal === undefined) {
    const { iteration, metrics } = head.pending.record;
    found.push({
      iteration,
      reward: finite(metrics['critic/score/mean']),
      loss: null,
      accuracy: null,
      checkpoint: false,
      applied: false,
    });
  }
  return found;
}

export function abandonedTable(rows: readonly AbandonedIteration[], printer: Printer): string {
  const columns = [
    { head: 'iteration', value: (row: AbandonedIteration) => row.iteration },
    { head: 'reward', value: (row: AbandonedIteration) => row.reward?.toFixed(3) },
    { head: 'loss', value: (row: AbandonedIteration) => (row.loss === null ? undefined : showNumber(row.loss)) },
    { head: 'accuracy', value: (row: AbandonedIteration) => row.accuracy?.toFixed(3) },
    { head: 'checkpoint', value: (row: AbandonedIteration) => (row.checkpoint ? 'out of reach' : undefined) },
    { head: 'state', value: (row: AbandonedIteration) => (row.applied ? undefined : 'not applied yet') },
  ].filter(({ value }) => rows.some((row) => value(row) !== undefined));
  return renderTable(rows, columns, printer.stderr.columns);
}

function finite(value: number | string | undefined): number | null {
  return typeof value === 'number' && Number.isFinite(value) ? value : null;
}
