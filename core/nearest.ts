/** The nearest known word to a misspelled one. */
import { at } from './at.ts';

/** Edit distance in which a swap of adjacent letters counts once (Damerau–Levenshtein, restricted form). */
export function editDistance(a: string, b: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i += 1) {
    const row = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const same = a[i - 1] === b[j - 1];
      let best = Math.min(at(last, j) + 1, at(row, j - 1) + 1, at(last, j - 1) + (same ? 0 : 1));
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      if (swapped) best = Math.min(best, at(beforeLast, j - 2) + 1);
      row.push(best);
    }
    beforeLast = last;
    last = row;
  }
  return at(last, b.length);
}

/**
 * The candidate nearest to `word`, or undefined when none is near enough. A candidate that goes on where the word ends
 * is nearer than all others: `clip_ratio_hi` means `clip_ratio_high`, not `clip_ratio`. Ties: the first one.
 */
export function nearest(word: string, candidates: Iterable<string>): string | undefined {
  const wanted = fold(word);
  let best: string | undefined;
  let completes = false;
  // A word of one letter is near nothing.
  const limit = Math.min(wanted.length, Math.max(1, Math.floor(wanted.length / 3)) + 1);
  let bestDistance = limit;
  for (const candidate of candidates) {
    const folded = fold(candidate);
    const distance = editDistance(wanted, folded);
    const isCompletion = folded.startsWith(wanted) && distance < limit;
    if (isCompletion === completes ? distance < bestDistance : isCompletion) {
      best = candidate;
      bestDistance = distance;
      completes = isCompletion;
    }
  }
  return best;
}

/** Case and separators are ignored: `maxResponseLength` is near `max_response_length`. */
function fold(word: string): string {
  return word.toLowerCase().replace(/[-_]/g, '');
}
