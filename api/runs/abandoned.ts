/** The iterations that a run abandons when it continues from an earlier one. */
import { isGiven, lossIn } from '../../core/given-loss.ts';
import type { EvalRecord } from '../../core/records/schema.ts';
import { measureOf } from '../../core/validation-measure.ts';
import type { ValidationMeasure } from '../../core/validation-measure.ts';
import type { Head, RunLog } from '../../log/run/run-log.ts';

export interface AbandonedIteration {
  readonly iteration: number;
  readonly reward: number | null;
  readonly loss: number | null;
  readonly accuracy: number | null;
  readonly validationMeasure: ValidationMeasure | null;
  /** True: it had a checkpoint, which can no longer be reached. */
  readonly checkpoint: boolean;
  /** False: its batch is committed and was not applied. */
  readonly applied: boolean;
}

/** Ascending: the committed iterations after `position`, and a batch that waits for its update. */
export async function abandonedAfter(log: RunLog, head: Head, position: number): Promise<AbandonedIteration[]> {
  const validations = new Map((await log.evaluations.all(position + 1)).map((record) => [record.iteration, record]));
  const saved = new Set<number>();
  for await (const { iteration } of log.checkpoints.eachName()) {
    if (iteration <= position) break;
    saved.add(iteration);
  }
  const found: AbandonedIteration[] = [];
  for await (const { batch, update } of log.iterations(position + 1)) {
    const k = update.record.iteration;
    const [reward, loss] = [
      finite(batch.record.metrics['critic/score/mean']),
      isGiven(batch.record) ? finite(lossIn(update.record.metrics)) : null,
    ];
    found.push({
      iteration: k,
      reward,
      loss,
      ...validationOf(validations.get(k)),
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
      ...validationOf(undefined),
      checkpoint: false,
      applied: false,
    });
  }
  return found;
}

function validationOf(record: EvalRecord | undefined): Pick<AbandonedIteration, 'accuracy' | 'validationMeasure'> {
  return record === undefined
    ? { accuracy: null, validationMeasure: null }
    : { accuracy: record.accuracy, validationMeasure: measureOf(record.metrics) };
}

function finite(value: number | string | undefined): number | null {
  return typeof value === 'number' && Number.isFinite(value) ? value : null;
}
