/** The curve of a whole run: its reward or loss, and its validations, by iteration. */
import { isGiven, lossIn } from '../../core/given-loss.ts';
import type { ValidationMeasure } from '../../core/validation-measure.ts';
import { measureOf } from '../../core/validation-measure.ts';
import type { RunLog } from '../../log/run/run-log.ts';
import { readableIteration } from './readable-iteration.ts';

export interface CurvePoint {
  readonly x: number;
  readonly y: number;
}

export interface RunCurve {
  readonly name: 'reward' | 'loss' | ValidationMeasure;
  readonly points: readonly CurvePoint[];
}

/** A curve of a longer run reads this many evenly spaced iterations. */
const mostPoints = 120;
/** The validations of a longer run are not read. */
const mostValidated = 2_000;

/** Omits curves with fewer than two points. */
export async function runCurves(log: RunLog): Promise<RunCurve[]> {
  const head = await log.head();
  if (head === undefined) return [];
  const first = await log.first();
  const positions = spread(first + 1, head.position);
  const read = await Promise.all(positions.map((k) => readableIteration(log, k, head)));
  const iterations = read.filter((one) => one !== undefined);
  const [earliest] = iterations;
  const showsLoss = earliest !== undefined && isGiven(earliest.batch.record);
  const trained = iterations.map(({ batch, update }) => ({
    x: update.record.iteration,
    y: Number(showsLoss ? lossIn(update.record.metrics) : batch.record.metrics['critic/score/mean']),
  }));
  const records = head.position - first > mostValidated ? [] : await log.evaluations.all(first);
  const newest = records.at(-1);
  const validated = records.map(({ iteration, accuracy }) => ({ x: iteration, y: accuracy }));
  return [
    { name: showsLoss ? ('loss' as const) : ('reward' as const), points: trained },
    ...(newest === undefined ? [] : [{ name: measureOf(newest.metrics), points: validated }]),
  ].filter(({ points }) => points.length > 1);
}

function spread(from: number, to: number): number[] {
  const count = Math.max(0, to - from + 1);
  if (count <= mostPoints) return Array.from({ length: count }, (_, i) => from + i);
  return Array.from({ length: mostPoints }, (_, i) => from + Math.round((i * (count - 1)) / (mostPoints - 1)));
}
