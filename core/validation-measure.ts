/** What the number of a validation is: accuracy only where the scorer says for each response whether it is right. */

export type ValidationMeasure = 'accuracy' | 'score';

/** Under these names a validation reports its number; n: responses to a question (verl: `val-core`). */
export const measureMetric = (measure: ValidationMeasure, n: number): string =>
  `val-core/${measure === 'accuracy' ? 'acc' : 'score'}/mean@${n}`;

/** Read from the metrics of a validation. Those of an older petrel did not say it, and called all of them accuracy. */
export function measureOf(metrics: Readonly<Record<string, unknown>>): ValidationMeasure {
  return Object.keys(metrics).some((name) => name.startsWith('val-core/score/')) ? 'score' : 'accuracy';
}
