/**
 * Permits for requests to a run's endpoint: a worker asks the control process, which counts over all workers. Ages and
 * durations only, because clocks differ.
 */
import { z } from 'zod';
import type { RunId } from '../ids.ts';
import { endpointLimits } from './endpoint-limits.ts';
import { wireVersion } from './messages.ts';
import { anyPlace, placeWords } from './worker-identity.ts';
import type { WorkerPlace } from './worker-identity.ts';

const version = z.literal(wireVersion);
const count = z.int().nonnegative();
const some = z.int().positive();

/** Worker → control (request). All of its parts are about permits of one worker and one run. */
export const permitMessage = z.object({
  v: version,
  limits: endpointLimits,
  /** Asks for one. The same id asked again is the same permit. The answer may take `pollMs`. */
  ask: z.object({ id: z.string(), tokens: count }).optional(),
  /** Permits in use: renewed, or taken into account by a control process that has not given them. */
  held: z.array(z.object({ id: z.string(), tokens: count, ageMs: z.number().nonnegative() })).optional(),
  /** Permits given back. */
  done: z
    .array(z.object({ id: z.string(), tokens: count.optional(), holdMs: z.number().nonnegative().optional() }))
    .optional(),
});
export type PermitMessage = z.infer<typeof permitMessage>;

/** Control → worker. `go`: the permit is given. A permit that is not renewed for `leaseMs` is given to others. */
export const permitReply = z.object({ v: version, go: z.boolean(), leaseMs: some });
export type PermitReply = z.infer<typeof permitReply>;

export const permitSubject = (runId: RunId, from: WorkerPlace) => `permit.${runId}.${placeWords(from)}`;
/** The messages of all workers about all runs. */
export const permitsSubject = `permit.*.${anyPlace}`;

export interface PermitTiming {
  readonly leaseMs: number;
  /** The control process answers an ask after this time at the latest. */
  readonly pollMs: number;
  /** What counts as a minute: longer, because a request may reach the endpoint later than its permit was given. */
  readonly minuteMs: number;
  /** After this time without any answer, a worker gives up. */
  readonly silenceMs: number;
}
export const permitTiming: PermitTiming = { leaseMs: 12_000, pollMs: 2_000, minuteMs: 61_000, silenceMs: 60_000 };
