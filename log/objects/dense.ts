/**
 * Dense sequences of keys, n = 1, 2, 3 …: entry n + 1 is created only after entry n, so the newest entry is found
 * without a listing.
 */
import { numberIn } from '../../core/records/keys.ts';
import type { Store } from '../../core/ports/store.ts';

/** Highest n ≥ 1 that exists, 0 when none does. `from`: an entry that the caller knows to exist. */
export function newestOf(store: Store, key: (n: number) => string, from = 0): Promise<number> {
  return lastOf(existsIn(store, key), from);
}

/**
 * Does what newestOf does, from a guess. `guess` may be wrong. It is asked for together with the entry after it: a
 * right guess costs the time of one request.
 */
export async function newestNear(store: Store, key: (n: number) => string, guess: number): Promise<number> {
  const exists = existsIn(store, key);
  if (guess === 0) return lastOf(exists, 0);
  const [isThere, isNext] = await Promise.all([exists(guess), exists(guess + 1)]);
  if (!isThere) return lastOf(exists, 0);
  return isNext ? lastOf(exists, guess + 1) : guess;
}

/**
 * Does what newestOf does, for sequences of a few thousand entries at most. One listing of `folder` gives the start; an
 * entry that the listing does not show yet is found by its key.
 */
export async function newestListed(store: Store, folder: string, key: (n: number) => string): Promise<number> {
  return newestNear(store, key, highestIn(await store.children(folder)));
}

/** The highest whole number among names such as `7`, `7/` and `7.json`; 0 when there is none. */
export function highestIn(names: readonly string[]): number {
  return names.reduce((highest, name) => Math.max(highest, numberIn(name) ?? 0), 0);
}

/**
 * The last n for which `holds`, which is true up to some n ≥ `low` and false after it. Checks low + 1, + 2, + 4, + 16,
 * + 256, …, then halves the exponent, then the rest: about log2(d) + 3 log2(log2(d)) checks for a distance d, and one
 * for 0. Bentley and Yao, "An almost optimal algorithm for unbounded searching", 1976.
 */
export async function lastOf(holds: (n: number) => Promise<boolean>, low: number): Promise<number> {
  if (!(await holds(low + 1))) return low;
  let [small, large] = [0, 1];
  while (await holds(low + 2 ** large)) [small, large] = [large, 2 * large];
  const exponent = await halve((e) => holds(low + 2 ** e), small, large);
  return halve(holds, low + 2 ** exponent, low + 2 ** (exponent + 1));
}

/** The last n of [low, high) for which `holds`, given that it holds for `low` and not for `high`. */
async function halve(holds: (n: number) => Promise<boolean>, low: number, high: number): Promise<number> {
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (await holds(middle)) low = middle;
    else high = middle;
  }
  return low;
}

function existsIn(store: Store, key: (n: number) => string): (n: number) => Promise<boolean> {
  return async (n) => (await store.head(key(n))) !== undefined;
}
