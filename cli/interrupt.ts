/** Ctrl-C as a signal for the work of a command. */
import { isStoreRefusal } from '../api/index.ts';

/** Runs `work` with a signal that the first Ctrl-C aborts. A second one ends the process, as it does everywhere. */
export async function untilInterrupted<T>(
  work: (signal: AbortSignal) => Promise<T>,
): Promise<{ readonly interrupted: boolean; readonly value: T | undefined }> {
  const leave = new AbortController();
  const onInterrupt = () => leave.abort();
  process.once('SIGINT', onInterrupt);
  try {
    const value = await work(leave.signal);
    return { interrupted: leave.signal.aborted, value };
  } catch (error) {
    // Who leaves while the store refuses has left, and met no error.
    if (!leave.signal.aborted || !isStoreRefusal(error)) throw error;
    return { interrupted: true, value: undefined };
  } finally {
    process.removeListener('SIGINT', onInterrupt);
  }
}
