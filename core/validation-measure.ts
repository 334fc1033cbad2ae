/** Which number a validation measures: accuracy only if the scorer says for each response whether it is right. */

export type ValidationMeasure = 'accuracy' | 'score';

/**
 * Read from the metrics of a validation, whose core numbers are `val-core/{source}/acc/…` or
 * `val-core/{source}/reward/…`. Older versions of petrel wrote `val-core/acc/…` or `val-core/score/…`; still older ones
 * neither, and always called the number accuracy.
 */
export function measureOf(metrics: Readonly<Record<string, unknown>>): ValidationMeasure {
  const isScore = /^val-core\/(?:score|.+\/reward)\/mean@\d+$/;
  return Object.keys(metrics).some((name) => isScore.test(name)) ? 'score' : 'accuracy';
}
