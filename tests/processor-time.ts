/**
 * Processor time of this process, for ratios of two measurements of one test: other work on the machine does not count.
 */

/** Milliseconds that `run` takes. */
export function processorMs(run: () => void): number {
  const before = process.cpuUsage();
  run();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}

/** Less is noise of the clock and of the garbage collector. */
const floorMs = 5;

/** How many times longer eight times the work takes: about 8 when the time is linear, 64 when it is quadratic. */
export function growth(run: (scale: number) => void): number {
  run(1); // compiled once
  const once = processorMs(() => run(1));
  return processorMs(() => run(8)) / Math.max(once, floorMs);
}
