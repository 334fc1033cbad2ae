/** Ctrl-C, or SIGTERM of a machine that shuts down, tells a worker to finish or give back its jobs and to leave. */
export async function untilToldToLeave<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const leaving = new AbortController();
  const leave = () => leaving.abort();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, leave);
  try {
    return await work(leaving.signal);
  } finally {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.off(signal, leave);
  }
}
