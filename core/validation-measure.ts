/** The name of a validation's number: accuracy only if the scorer says for each response whether it is right. */

export type ValidationMeasure = 'accuracy' | 'score';

/** The metric names of a validation's number; n: responses per question (verl: `val-core`). */
export const measureMetric = (measure: ValidationMeasure, n: number): string =>
  `val-core/${measure === 'accuracy' ? 'acc' : 'score'}/mean@${n}`;

/**
 * Read from the metrics of a validation. Validations of older petrel versions do not contain it and were always called
 * accuracy.
 */
export function measureOf(metrics: Readonly<Record<string, unknown>>): ValidationMeasure {
  return Object.keys(metrics).some((name) => name.startsWith('val-core/score/')) ? 'score' : 'accuracy';
}
