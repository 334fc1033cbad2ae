/**
 * Streams and consumers are declared by the control process alone. A worker asks for those that it needs, when it
 * starts and when the server has lost them.
 */
import { z } from 'zod';
import { machineNeeds } from '../machine-needs.ts';
import { roles } from '../roles.ts';
import { wireVersion } from './messages.ts';
import { anyPlace, placeWords } from './worker-identity.ts';
import type { WorkerPlace } from './worker-identity.ts';

const version = z.literal(wireVersion);

/** Worker → control (request). */
export const declarationRequest = z.discriminatedUnion('what', [
  /** The queue of a role's jobs that this profile can compute: `any`, or the id of a numeric profile. */
  z.object({ v: version, what: z.literal('jobs'), role: z.enum(roles), profile: z.string().regex(/^[\w-]+$/) }),
  z.object({ v: version, what: z.literal('journal') }),
]);
export type DeclarationRequest = z.infer<typeof declarationRequest>;

/** Control → worker. `error`: why it was not declared. `needs`: of the jobs that there are, as in `wantedNeeds`. */
export const declarationReply = z.object({
  v: version,
  error: z.string().optional(),
  needs: z.array(machineNeeds).optional(),
});

/** Control → workers: there are jobs with these needs, in queues of their own, which workers read that meet them. */
export const wantedNeeds = z.object({ v: version, needs: z.array(machineNeeds) });
export const wantedNeedsSubject = 'queues.needs';

export const declarationSubject = (from: WorkerPlace) => `declare.${placeWords(from)}`;
export const declarationsSubject = `declare.${anyPlace}`;
