/**
 * Combines the values that micro-batches and ranks report under one name (verl: `reduce_metrics`,
 * `Metric.aggregate_dp`).
 */
import { InvalidInputError } from '../../core/errors.ts';

export type Aggregation = 'mean' | 'sum' | 'min' | 'max';

/**
 * Decided by a substring of the name, as in verl: `max` has priority over `min`, other names are averaged.
 * Case-sensitive.
 */
function aggregationOf(name: string): Aggregation {
  if (name.includes('max')) return 'max';
  if (name.includes('min')) return 'min';
  return 'mean';
}

export function reduceMetrics(metrics: Readonly<Record<string, number | readonly number[]>>): Record<string, number> {
  return Object.fromEntries(
    Object.entries(metrics).map(([name, values]) => [
      name,
      typeof values === 'number' ? values : aggregateValues(values, aggregationOf(name)),
    ]),
  );
}

export function aggregateValues(values: readonly number[], aggregation: Aggregation): number {
  switch (aggregation) {
    case 'mean':
      return total(values) / values.length;
    case 'sum':
      return total(values);
    case 'min':
      return Math.min(...values);
    case 'max':
      return Math.max(...values);
  }
}

/** Sums are averaged over ranks, since each rank's loss is multiplied by their number. */
export function aggregateRanks(values: readonly (readonly number[])[], aggregation: Aggregation): number {
  if (values.some((ofRank) => ofRank.length !== values[0]?.length)) {
    throw new InvalidInputError(
      `ranks report ${values.map((ofRank) => ofRank.length).join(', ')} values; they must be equally many`,
    );
  }
  const reduced = values.map((ofRank) => aggregateValues(ofRank, aggregation));
  return aggregateValues(reduced, aggregation === 'sum' ? 'mean' : aggregation);
}

function total(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0);
}
