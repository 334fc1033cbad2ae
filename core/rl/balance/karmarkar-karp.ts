/**
 * Splits numbers into k parts of nearly equal sums by the largest differencing method (Karmarkar & Karp 1982; verl:
 * `karmarkar_karp`, `get_seqlen_balanced_partitions`), with verl's tie rules, so that the parts come out in its order.
 *
 * A state is k sets, ordered from the largest sum down. The two states with the widest spread are merged, largest set
 * with smallest, until one is left.
 */
import { at } from '../../at.ts';
import { InvalidInputError } from '../../errors.ts';
import type { Numbers } from '../ragged.ts';

interface Item {
  readonly index: number;
  readonly size: number;
}

interface Part {
  readonly sum: number;
  readonly items: readonly Item[];
}

/** k parts, the one with the largest sum first. */
type State = readonly Part[];

/**
 * Indices of each part, ascending; parts in order of falling sums. `equalSize` puts the same number of items in each.
 * @throws InvalidInputError with fewer items than parts, or when equal parts don't divide, or when a part stays empty.
 */
export function balancedPartitions(sizes: Numbers, parts: number, equalSize: boolean): number[][] {
  if (sizes.length < parts) throw new InvalidInputError(`${sizes.length} items cannot fill ${parts} parts`);
  if (equalSize && sizes.length % parts !== 0) {
    throw new InvalidInputError(`${sizes.length} items do not divide into ${parts} equal parts`);
  }
  const partitions = differencing(sizes, parts, equalSize).map((part) => part.items.map((item) => item.index));
  if (partitions.some((partition) => partition.length === 0))
    throw new InvalidInputError(`a part of ${parts} stays empty`);
  return partitions.map((partition) => partition.sort((a, b) => a - b));
}

function differencing(sizes: Numbers, parts: number, equalSize: boolean): State {
  const ascending = Array.from({ length: sizes.length }, (_, index) => ({ index, size: at(sizes, index) }));
  ascending.sort((a, b) => a.size - b.size || a.index - b.index);
  const perState = equalSize ? parts : 1;
  const states: State[] = [];
  for (let i = 0; i < ascending.length; i += perState)
    insert(states, initialState(ascending.slice(i, i + perState), parts));
  while (states.length > 1) {
    const [second, first] = states.splice(-2) as [State, State];
    insert(states, merge(first, second));
  }
  return at(states, 0);
}

function initialState(items: readonly Item[], parts: number): State {
  const state = Array.from({ length: parts }, (_, i): Part => {
    const item = items[i];
    return item === undefined ? { sum: 0, items: [] } : { sum: item.size, items: [item] };
  });
  return state.sort(largestFirst);
}

function merge(a: State, b: State): State {
  const merged = a.map((part, i): Part => {
    const other = at(b, a.length - 1 - i);
    return { sum: part.sum + other.sum, items: [...part.items, ...other.items] };
  });
  return merged.sort(largestFirst);
}

/** Keeps the states sorted, the next one to take at the end. */
function insert(states: State[], state: State): void {
  let [low, high] = [0, states.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (takenLater(at(states, middle), state)) low = middle + 1;
    else high = middle;
  }
  states.splice(low, 0, state);
}

/** Widest spread is taken first; on a tie, the one with the larger largest set. */
function takenLater(a: State, b: State): boolean {
  const difference = spread(a) - spread(b);
  return difference !== 0 ? difference < 0 : comparePart(at(a, 0), at(b, 0)) < 0;
}

function spread(state: State): number {
  return at(state, 0).sum - at(state, -1).sum;
}

function largestFirst(a: Part, b: Part): number {
  return comparePart(b, a);
}

/** Compares by sum, then by number of items, then by the items themselves. */
function comparePart(a: Part, b: Part): number {
  if (a.sum !== b.sum) return a.sum - b.sum;
  if (a.items.length !== b.items.length) return a.items.length - b.items.length;
  for (let i = 0; i < a.items.length; i++) {
    const [x, y] = [at(a.items, i), at(b.items, i)];
    if (x.index !== y.index) return x.index - y.index;
  }
  return 0;
}
