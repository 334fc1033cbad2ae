/**
 * Several reward components per sample (verl: `reward_loop/reward_manager/gdpo.py` and the metrics in
 * `ray_trainer.py:fit`; Liu et al. 2026, GDPO, arXiv 2601.05242). The scorer returns an object; each key of
 * `algorithm.gdpo_reward_keys` is a component, which the estimator `gdpo` normalises by itself.
 *
 * verl leaves the metrics of a missing component out and fails later; here it is refused at once.
 */
import { InvalidInputError } from '../../errors.ts';
import { square } from '../../math/square.ts';
import { columnsOf, rewardsOf, type ColumnValue, type ManagedRewards, type ScorerResult } from './types.ts';

export interface GdpoRewards extends ManagedRewards {
  /** One value per sample for each key. */
  readonly components: Readonly<Record<string, Float64Array>>;
  /** `gdpo/<key>/mean`, `std` (of the population), `max` and `min`. */
  readonly metrics: Readonly<Record<string, number>>;
}

/**
 * A score without columns is its own column `acc`.
 * @throws InvalidInputError when a sample lacks a component, or it is no finite number; when there are no samples.
 */
export function gdpoRewards(results: readonly ScorerResult[], keys: readonly string[]): GdpoRewards {
  const columns = columnsOf(results, 'acc');
  const components = Object.fromEntries(keys.map((key) => [key, component(key, columns[key], results)]));
  const metrics = Object.entries(components).flatMap(([key, values_S]) => statistics(key, values_S));
  return { rewards_S: rewardsOf(results), columns, components, metrics: Object.fromEntries(metrics) };
}

function component(
  key: string,
  column: readonly ColumnValue[] | undefined,
  results: readonly ScorerResult[],
): Float64Array {
  if (results.length === 0) throw new InvalidInputError(`gdpo: there are no samples to read ${key} from`);
  return Float64Array.from(results, (result, s) => {
    const value = column?.[s];
    if (typeof value === 'boolean') return Number(value);
    if (typeof value === 'number' && Number.isFinite(value)) return value;
    const has = typeof result === 'number' ? 'a number alone' : Object.keys(result).join(', ');
    throw new InvalidInputError(
      `gdpo: sample ${s} has no component ${key}${value === null || value === undefined ? '' : `, but ${JSON.stringify(value)}`}; the scorer returned ${has}`,
      { hint: `return ${key} as a number, or change algorithm.gdpo_reward_keys` },
    );
  });
}

function statistics(key: string, values_S: Float64Array): (readonly [string, number])[] {
  let sum = 0;
  let [max, min] = [-Infinity, Infinity];
  for (const value of values_S) {
    sum += value;
    max = Math.max(max, value);
    min = Math.min(min, value);
  }
  const mean = sum / values_S.length;
  let squares = 0;
  for (const value of values_S) squares += square(value - mean);
  const std = Math.sqrt(squares / values_S.length);
  return Object.entries({ mean, std, max, min }).map(([name, value]) => [`gdpo/${key}/${name}`, value] as const);
}
