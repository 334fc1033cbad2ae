/** In which order test files begin, and which of n machines runs which, by their durations. */

/** Longest first, so that at the end no core waits for a long file. Equal ones keep their order. */
export function longestFirst<T>(files: readonly T[], seconds: (file: T) => number): T[] {
  return files.toSorted((a, b) => seconds(b) - seconds(a));
}

/**
 * The files of machine `index` (from 1) of `count`: each file goes to the machine that has least to do so far, the
 * longest file first. Every machine computes the same shares from the same list.
 */
export function shareOf<T>(files: readonly T[], seconds: (file: T) => number, index: number, count: number): T[] {
  const shares = Array.from({ length: count }, () => ({ files: [] as T[], seconds: 0 }));
  for (const file of longestFirst(files, seconds)) {
    const least = shares.reduce((best, share) => (share.seconds < best.seconds ? share : best));
    least.files.push(file);
    least.seconds += seconds(file);
  }
  return shares[index - 1]?.files ?? [];
}
