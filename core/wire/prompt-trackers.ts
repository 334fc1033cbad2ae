/**
 * What a run with the estimator `spo` remembers of its prompts (core/rl/spo-tracker.ts), as controllers of the
 * counters:
 *
 *   spo        the blob of the trackers: counts of each row that was sampled, and where its last response is
 *   spo.<k>    a blob of last responses (models/last-responses.ts), made with the batch of iteration k; as long as one
 *              of them is still the last response to its row
 *
 * So every blob that a position needs is named by its counters, and a batch writes its own responses only. When there
 * would be more than `mostParts` of these blobs, the next batch writes all responses into one.
 */
import { z } from 'zod';
import { damage } from '../records/damage.ts';
import type { Counters } from '../records/schema.ts';
import type { PromptTracker } from '../rl/spo-tracker.ts';

const mostParts = 16;

const count = z.int().nonnegative();

const stored = z.object({
  /** The batch after which it holds. They make every state a different object. */
  iteration: count,
  parentState: z.string(),
  /**
   * Row, α, β, how many responses were scored, and the iteration whose blob has the last response; null: none is kept.
   */
  rows: z.array(z.tuple([count, z.number(), z.number(), count, count.nullable()])),
});

/** What is known of a row that was sampled. */
export interface TrackedPrompt extends PromptTracker {
  /** Responses that were scored so far. */
  readonly responses: number;
  /** The iteration whose blob has the last response; null: none is kept. */
  readonly part: number | null;
}

/** Trackers by number of the row. Rows that were not sampled yet are absent. */
export type PromptTrackers = ReadonlyMap<number, TrackedPrompt>;

const STATE = 'spo';
const partName = (iteration: number): string => `${STATE}.${iteration}`;
const isTracked = (name: string): boolean => name === STATE || name.startsWith(`${STATE}.`);

const blobNamed = ({ controllers }: Counters, name: string): string | undefined => {
  const state = controllers[name];
  return typeof state === 'object' ? state.blob : undefined;
};

/** Digest of the blob of the trackers; undefined before the first batch. */
export const trackersBlob = (counters: Counters): string | undefined => blobNamed(counters, STATE);

/** Digest of the blob of last responses from this iteration. Throws PauseError `DamagedRecord` when none is named. */
export function responsesBlob(counters: Counters, iteration: number): string {
  const blob = blobNamed(counters, partName(iteration));
  if (blob === undefined) throw damage('DamagedRecord', partName(iteration), 'the counters do not name this blob');
  return blob;
}

/**
 * The iterations whose responses must be written again with those of the next batch, because there are too many blobs.
 */
export function partsToMerge(trackers: PromptTrackers): ReadonlySet<number> {
  const parts = new Set([...trackers.values()].flatMap(({ part }) => part ?? []));
  return parts.size < mostParts ? new Set() : parts;
}

/**
 * The controllers after a batch: those of before, with the new trackers, and the blobs of responses that are still the
 * last ones.
 */
export function withTrackers(
  { controllers }: Counters,
  trackers: PromptTrackers,
  made: { readonly trackers: string; readonly iteration: number; readonly responses?: string },
): Counters['controllers'] {
  const live = new Set([...trackers.values()].flatMap(({ part }) => (part === null ? [] : [partName(part)])));
  const kept = Object.entries(controllers).filter(([name]) => !isTracked(name) || live.has(name));
  return {
    ...Object.fromEntries(kept),
    [STATE]: { blob: made.trackers },
    ...(made.responses !== undefined && { [partName(made.iteration)]: { blob: made.responses } }),
  };
}

export function encodeTrackers(
  trackers: PromptTrackers,
  { iteration, parentState }: { readonly iteration: number; readonly parentState: string },
): z.infer<typeof stored> {
  const rows = [...trackers].map(([row, { alpha, beta, responses, part }]): z.infer<typeof stored>['rows'][number] => [
    row,
    alpha,
    beta,
    responses,
    part,
  ]);
  return { iteration, parentState, rows: rows.sort(([a], [b]) => a - b) };
}

/** Throws PauseError `DamagedRecord`. */
export function decodeTrackers(value: unknown, where: string): PromptTrackers {
  const { success, data, error } = stored.safeParse(value);
  if (!success) throw damage('DamagedRecord', where, `no trackers of prompts: ${z.prettifyError(error)}`);
  return new Map(
    data.rows.map(([row, alpha, beta, responses, part]) => [row, { alpha, beta, responses, part }] as const),
  );
}
