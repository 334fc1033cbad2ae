/**
 * How weights get from a trainer to the processes that sample with them. Each of these asks a process that has the
 * weights in memory, or gets them at that moment: the trainer, or another sampler before it. The store is asked when
 * nobody answers.
 *
 * ```
 *   GET http://<holder>/<run>/<digest of the publication>/<first byte>
 *   authorization: HMAC-SHA-256(secret of the run, the path)
 *   → the bytes of the publication from that one on (core/records/publications.ts), as they become available
 * ```
 *
 * Whoever gets weights hashes them whole, so it does not matter who has sent them.
 */
import { z } from 'zod';
import { numericProfile, publication } from '../records/schema.ts';

/** Scheme, address and port of a process that serves weights. */
export const holderUrl = z.string().regex(/^http:\/\/[^/\s]+:\d+$/);

/** The holders that one process asks, the first one first, and the secret of the run with which it asks and answers. */
export const weightsHolders = z.object({ secret: z.string(), urls: z.array(holderUrl) });
export type WeightsHolders = z.infer<typeof weightsHolders>;

/** Control → samplers: an update was committed. Those that have the weights before it may load these now. */
export const newWeights = z.object({
  v: z.literal(1),
  runId: z.string(),
  store: z.string(),
  /** Position of the update in the run's log. */
  iteration: z.int().positive(),
  model: z.string(),
  profile: numericProfile,
  weights: z.string(),
  /** What the samplers load. Absent: the fp32 values. */
  publication: publication.optional(),
  /** The order in which holders get them from each other: see `holdersBefore`. */
  order: z.array(holderUrl),
});
export type NewWeights = z.infer<typeof newWeights>;
export const newWeightsSubject = 'weights.new';

/**
 * The order is a tree with two branches at each place: a process gets the weights from the one halfway before it, or,
 * when that one does not answer, from the first. So no process sends them to many.
 */
export function holdersBefore(order: readonly string[], place: number): string[] {
  if (place <= 0) return [];
  return [...new Set([order[Math.floor((place - 1) / 2)], order[0]])].filter((url) => url !== undefined);
}

export const weightsPath = (runId: string, publication: string, firstByte: number): string =>
  `/${runId}/${publication}/${firstByte}`;

/** The parts of such a path; undefined for another text. */
export function readWeightsPath(path: string): { runId: string; publication: string; firstByte: number } | undefined {
  const found = /^\/([^/]+)\/([0-9a-f]{64})\/(\d{1,15})$/.exec(path);
  if (found === null) return undefined;
  const [, runId = '', publication = '', firstByte = ''] = found;
  return { runId, publication, firstByte: Number(firstByte) };
}
