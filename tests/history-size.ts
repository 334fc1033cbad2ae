/** How large a workflow's history is, as Temporal counts it against its limits and as people read it (JSON). */
import type { Client } from '@temporalio/client';

/** Of an iteration: the mean over those after the first, without what happens once in a run. */
export interface HistorySize {
  readonly events: number;
  /** Encoded, by the server's own count. */
  readonly encodedBytes: number;
  readonly jsonBytes: number;
  /** As JSON. */
  readonly largestEvent: number;
}

/** Of the newest execution. */
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
  // The workflow task that answers an update knows how long the history was before it.
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
