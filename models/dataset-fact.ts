/**
 * Tokenised rows as a fact of the store, so that a resumed run cannot see changed ones: tokens beside what scorers
 * read.
 */
import { z } from 'zod';
import { checkOffsets, misshapen } from './shape-check.ts';
import { decodeSafetensors, encodeSafetensors } from './safetensors.ts';
import { i32, i32Of } from './trajectories.ts';

/** What a scorer and a reader of samples need of a row. */
export interface RowFact {
  readonly dataSource: string;
  /** The prompt as rendered, before tokenisation. */
  readonly prompt: string;
  readonly groundTruth?: unknown;
  readonly extraInfo?: unknown;
}

export interface DatasetFact {
  readonly rows: readonly RowFact[];
  readonly promptTokens: Int32Array;
  readonly promptOffsets: Int32Array;
  /** Response tokens; only for kind `sft`. */
  readonly responseTokens?: Int32Array;
  readonly responseOffsets?: Int32Array;
}

export const tokensFile = 'tokens.safetensors';
export const rowsFile = 'rows.jsonl';

export function encodeDatasetTokens(dataset: DatasetFact): Uint8Array {
  return encodeSafetensors({
    prompt_tokens: i32(dataset.promptTokens),
    prompt_offsets: i32(dataset.promptOffsets),
    ...(dataset.responseTokens && { response_tokens: i32(dataset.responseTokens) }),
    ...(dataset.responseOffsets && { response_offsets: i32(dataset.responseOffsets) }),
  });
}

export function encodeDatasetRows(dataset: DatasetFact): Uint8Array {
  return new TextEncoder().encode(dataset.rows.map((row) => `${JSON.stringify(row)}\n`).join(''));
}

export function decodeDataset(tokens: Uint8Array, rows: Uint8Array, where: string): DatasetFact {
  const file = decodeSafetensors(tokens, where);
  const promptOffsets = i32Of(file, 'prompt_offsets', where);
  const facts = decodeRows(rows, where);
  if (facts.length !== promptOffsets.length - 1)
    throw misshapen(where, `${facts.length} rows beside ${promptOffsets.length - 1} prompts`);
  const promptTokens = i32Of(file, 'prompt_tokens', where);
  checkOffsets(where, 'prompt_offsets', promptOffsets, facts.length, promptTokens.length);
  if (file.tensors.has('response_tokens')) {
    checkOffsets(
      where,
      'response_offsets',
      i32Of(file, 'response_offsets', where),
      facts.length,
      i32Of(file, 'response_tokens', where).length,
    );
  }
  return {
    rows: facts,
    promptTokens,
    promptOffsets,
    ...(file.tensors.has('response_tokens') && {
      responseTokens: i32Of(file, 'response_tokens', where),
      responseOffsets: i32Of(file, 'response_offsets', where),
    }),
  };
}

const rowSchema = z
  .object({ dataSource: z.string(), prompt: z.string(), groundTruth: z.unknown(), extraInfo: z.unknown() })
  .partial({ groundTruth: true, extraInfo: true });

function decodeRows(bytes: Uint8Array, where: string): RowFact[] {
  const lines = new TextDecoder().decode(bytes).split('\n').filter(Boolean);
  return lines.map((line, i) => {
    const row = rowSchema.safeParse(jsonOf(line));
    if (!row.success) throw misshapen(where, `row ${i} is no row`);
    return row.data;
  });
}

/** undefined for what is no JSON. */
function jsonOf(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}

/** Tokens of a row's prompt. Throws RangeError outside the dataset. */
export function promptOf(dataset: DatasetFact, row: number): Int32Array {
  return slice(dataset.promptTokens, dataset.promptOffsets, row);
}

/** Tokens to learn of a row (kind: sft). */
export function responseOf(dataset: DatasetFact, row: number): Int32Array {
  if (dataset.responseTokens === undefined || dataset.responseOffsets === undefined)
    throw new RangeError('the dataset has no responses');
  return slice(dataset.responseTokens, dataset.responseOffsets, row);
}

function slice(tokens: Int32Array, offsets: Int32Array, row: number): Int32Array {
  const start = offsets[row];
  const end = offsets[row + 1];
  if (start === undefined || end === undefined) throw new RangeError(`row ${row} of ${offsets.length - 1}`);
  return tokens.subarray(start, end);
}
