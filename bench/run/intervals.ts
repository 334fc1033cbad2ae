/** Spans of time, possibly side by side: jobs of one iteration run at once on one engine, and must not count twice. */

/** [start, end) in ms of the clock. */
export type Interval = readonly [start: number, end: number];

/** How much time is inside at least one of them. */
export function coveredMs(intervals: readonly Interval[]): number {
  let covered = 0;
  let reached = Number.NEGATIVE_INFINITY;
  for (const [start, end] of intervals.toSorted((a, b) => a[0] - b[0])) {
    covered += Math.max(0, end - Math.max(start, reached));
    reached = Math.max(reached, end);
  }
  return covered;
}
