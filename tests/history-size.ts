/** The size of a workflow's history, as Temporal counts it for its limits, and as JSON. */
import type { Client } from '@temporalio/client';

/** Size of an iteration: the mean over all after the first, without events that happen once per run. */
export interface HistorySize {
  readonly events: number;
  /** Encoded size, as the server counts it. */
  readonly encodedBytes: number;
  readonly jsonBytes: number;
  /** Bytes of the largest event as JSON. */
  readonly largestEvent: number;
}

/** History of the newest execution. */
export async function historyPerIteration(client: Client, runId: string): Promise<HistorySize> {
  const events = (await client.workflow.getHandle(runId).fetchHistory()).events ?? [];
  const updates = new Set(
    events
      .filter((event) => event.activityTaskScheduledEventAttributes?.activityType?.name === 'update')
      .map(({ eventId }) => String(eventId)),
  );
  const committed = events.flatMap((event, i) =>
    updates.has(String(event.activityTaskCompletedEventAttributes?.scheduledEventId)) ? [i] : [],
  );
  const [first = 0, last = 0] = [committed[0], committed.at(-1)];
  const between = events.slice(first + 1, last + 1).map((event) => JSON.stringify(event).length);
  // A workflow task that answers an update contains the length of the history before it.
  const sizeAfter = (i: number) =>
    Number(
      events.slice(i).find((event) => event.workflowTaskStartedEventAttributes)?.workflowTaskStartedEventAttributes
        ?.historySizeBytes,
    );
  const iterations = committed.length - 1;
  return {
    events: between.length / iterations,
    encodedBytes: Math.round((sizeAfter(last) - sizeAfter(first)) / iterations),
    jsonBytes: Math.round(between.reduce((sum, bytes) => sum + bytes, 0) / iterations),
    largestEvent: Math.max(...between),
  };
}
