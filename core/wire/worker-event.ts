/**
 * What became of a worker, as a record: in the log lines of runs (`petrel logs --json`), and counted in their metrics.
 */
import { z } from 'zod';
import { shownName } from './worker-identity.ts';

/**
 * `joined`: it has announced itself. `notice`: it was told to leave, or its cloud expects to take its machine back.
 * `lost`: it is gone without having been told to leave. `replaced`: one that was lost or told to leave has a successor,
 * which has joined.
 */
const workerEventTypes = ['joined', 'notice', 'lost', 'replaced'] as const;
export type WorkerEventType = (typeof workerEventTypes)[number];

const place = z.object({ instance: z.string(), worker: z.string() });

export const workerEvent = place.extend({
  type: z.enum(workerEventTypes),
  /** Incarnation of the process. */
  incarnation: z.string(),
  roles: z.array(z.string()),
  /** The reason of a notice or a loss, when it is known. */
  because: z.string().optional(),
  /** The successor, in an event `replaced`. */
  by: place.optional(),
});
export type WorkerEvent = z.infer<typeof workerEvent>;

/**
 * Text of an event for people on the machine whose instance is `own`: `lost: worker i-0a1b/w1 (its connection closed)`.
 */
export function eventText({ type, roles, because, by, ...of }: WorkerEvent, own: string): string {
  const more = type === 'joined' ? roles.join(' ') : because;
  const successor = by === undefined ? '' : ` by ${shownName(by, own)}`;
  return `${type}: worker ${shownName(of, own)}${successor}${more === undefined ? '' : ` (${more})`}`;
}
