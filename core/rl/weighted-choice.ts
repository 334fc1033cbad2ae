/**
 * Chooses some of a list by weights, without replacement: one after the other, each with a probability in proportion to
 * its weight among those that are left (numpy: `choice(…, replace=False, p=weights)`). An item's clock rings after
 * −log(1 − u)/weight with a random number u of its own, and the first ones to ring are chosen (Efraimidis and Spirakis
 * 2006). So whether an item is chosen follows from its own random number and the weights, whatever the order of the
 * list.
 */
import { at } from '../at.ts';
import { InvalidInputError } from '../errors.ts';
import { log1p } from '../math/log.ts';
import { philoxUniform, type PhiloxKey } from './philox.ts';
import type { Numbers } from './ragged.ts';

/**
 * Places of the chosen ones, ascending. `numbers`: of each item, from which its random number follows.
 *
 * @throws InvalidInputError unless all weights are finite and greater than 0.
 */
export function chooseByWeight(weights: Numbers, numbers: Numbers, count: number, key: PhiloxKey): number[] {
  const clocks = Float64Array.from(weights, (weight, i) => {
    if (!(weight > 0 && Number.isFinite(weight)))
      throw new InvalidInputError(`a weight must be greater than 0 and finite, got ${weight} for number ${i}`);
    const number = at(numbers, i);
    return -log1p(-philoxUniform([number >>> 0, Math.floor(number / 2 ** 32), 0, 0], key)) / weight;
  });
  const places = [...clocks.keys()].sort((a, b) => at(clocks, a) - at(clocks, b) || a - b);
  return places.slice(0, count).sort((a, b) => a - b);
}
