/** Tells the runs of a stack what becomes of its workers, and counts it for their metrics. */
import type { NatsConnection } from '@nats-io/nats-core';
import { errorToJson } from '../../core/errors.ts';
import { WorkerEvents } from '../../core/fleet/worker-events.ts';
import type { Timing } from '../../core/wire/messages.ts';
import { eventText } from '../../core/wire/worker-event.ts';
import type { WorkerEvent } from '../../core/wire/worker-event.ts';
import { EventCounts } from '../../infra/fleet/event-counts.ts';
import { linkOf } from '../../infra/nats/link.ts';
import { listWorkers, watchPresence } from '../../infra/nats/jobs/presence.ts';
import { drivenRuns } from '../../infra/stack/driven-runs.ts';
import type { Say } from '../../infra/telemetry/run-log-lines.ts';

export interface WorkerWatchPorts {
  readonly nc: NatsConnection;
  readonly home: string;
  /** Instance of this machine. */
  readonly instance: string;
  readonly timing: Timing;
  /** Does the server tell whose connection has closed? If not, a worker that is silent for long is lost. */
  readonly departuresAreTold: boolean;
  readonly say: (runId: string) => Say;
  readonly log: (line: string) => void;
}

export interface WorkerWatch {
  readonly events: WorkerEvents;
  readonly counts: EventCounts;
}

/** Missing that many presences. */
const timesSilent = 10;

/** Workers that are there already have not joined. */
export async function watchWorkers(ports: WorkerWatchPorts): Promise<WorkerWatch> {
  const events: WorkerEvents = new WorkerEvents((event) => tell(ports, counts, event));
  const counts = new EventCounts(() => events.count);
  for (const entry of await listWorkers(ports.nc)) events.found(entry, Date.now());
  watchPresence(ports.nc, (entry) => events.heard(entry, Date.now()));
  linkOf(ports.nc).onBack(() => events.deafUntil(Date.now()));
  const silentMs = timesSilent * ports.timing.presenceMs;
  if (!ports.departuresAreTold)
    setInterval(() => events.expire(Date.now() - silentMs, Date.now()), silentMs / 2).unref();
  return { events, counts };
}

function tell({ home, instance, say, log }: WorkerWatchPorts, counts: EventCounts, event: WorkerEvent): void {
  counts.add(event.type);
  const text = eventText(event, instance);
  log(text);
  void drivenRuns(home)
    .all()
    .then((runs) => {
      for (const { runId } of runs) say(runId)(event.type === 'lost' ? 'warn' : 'info', text, event);
    })
    .catch((error: unknown) => log(`the runs could not be told: ${errorToJson(error).message}`));
}
