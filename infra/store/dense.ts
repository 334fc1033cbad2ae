/** Dense sequences of keys, n = 1, 2, 3 …: the newest is found without a listing. */
import type { Store } from '../../core/ports.ts';

/** Highest n ≥ 1 that is there, 0 when none is; `from`: one that is known to be there. Galloping, then halving. */
export async function newestOf(store: Store, key: (n: number) => string, from = 0): Promise<number> {
  const there = async (n: number) => (await store.head(key(n))) !== undefined;
  let low = from;
  let step = 1;
  while (await there(low + step)) {
    low += step;
    step *= 2;
  }
  let high = low + step;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (await there(middle)) low = middle;
    else high = middle;
  }
  return low;
}
