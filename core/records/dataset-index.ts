/**
 * The index of a dataset of format 2: which blocks of rows there are, and how a row becomes tokens. The dataset's
 * digest is the digest of this file, so it names every block too.
 */
import { z } from 'zod';
import { ROW_KINDS } from '../run-kinds.ts';
import { digest } from './schema.ts';

export const datasetIndexName = 'index.json';

/** Name of a block in the dataset's folder. */
export const blockName = (sha256: string): string => `${sha256}.jsonl`;

const count = z.int().nonnegative();

const datasetBlock = z.object({ firstRow: count, rows: z.int().positive(), bytes: z.int().positive(), sha256: digest });

/** Fields that only some datasets need are left out, so that what changes no row changes no digest. */
const datasetRules = z.object({
  kind: z.enum(ROW_KINDS),
  /** Tokens of the longest prompt. Absent: not all were counted, and `limit` is what they are cut at. */
  longest: count.optional(),
  /** Absent: no row is longer. `maxLength`: tokens of the prompt (rl), of prompt and response together (sft, pairs). */
  limit: z
    .object({ maxLength: z.int().positive(), truncation: z.enum(['error', 'left', 'right', 'middle']) })
    .optional(),
  /** The chat template, for prompts of chat messages. */
  template: z.string().optional(),
  templateKwargs: z.record(z.string(), z.unknown()).optional(),
  /** What the template's clock says: `2026-01-02T03:04:05`. */
  now: z.string().optional(),
});

export const datasetIndex = datasetRules
  .extend({ format: z.literal(2), rows: z.int().positive(), blocks: z.array(datasetBlock).min(1) })
  .refine(({ rows, blocks }) => isGapless(rows, blocks), 'expected blocks that hold all rows, one after the other');

/** How stored rows become tokens. */
export type DatasetRules = z.infer<typeof datasetRules>;
export type DatasetBlock = z.infer<typeof datasetBlock>;
export type DatasetIndex = z.infer<typeof datasetIndex>;

function isGapless(rows: number, blocks: readonly DatasetBlock[]): boolean {
  let next = 0;
  for (const block of blocks) {
    if (block.firstRow !== next) return false;
    next += block.rows;
  }
  return next === rows;
}
