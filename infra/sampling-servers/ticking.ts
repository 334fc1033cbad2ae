/** Progress of work that waits for a server: a wait that is bounded is no standstill. */
const tickMs = 1_000;

/** Calls `tick` from now on, every second, until the function that it returns is called. */
export function ticking(tick: (() => void) | undefined): () => void {
  if (tick === undefined) return () => {};
  const timer = setInterval(tick, tickMs);
  return () => clearInterval(timer);
}
