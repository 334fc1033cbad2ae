/**
 * Spans of time that may overlap: jobs of one iteration run in parallel on one engine, and their common time must count
 * once.
 */

/** [start, end) in ms of the clock. */
export type Interval = readonly [start: number, end: number];

/** How much time at least one of them covers. */
export function coveredMs(intervals: readonly Interval[]): number {
  let covered = 0;
  let reached = Number.NEGATIVE_INFINITY;
  for (const [start, end] of intervals.toSorted((a, b) => a[0] - b[0])) {
    covered += Math.max(0, end - Math.max(start, reached));
    reached = Math.max(reached, end);
  }
  return covered;
}
