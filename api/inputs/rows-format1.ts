/** Reads a run's files again, in the row format of the run: the same files give the same digest. */
import { join } from 'node:path';
import type { Digest } from '../../core/ids.ts';
import type { Recipe } from '../../core/recipe/index.ts';
import { datasetFormat, storeDataset } from '../../log/inputs/datasets.ts';
import { WaitingBlocks } from '../../log/inputs/waiting-blocks.ts';
import type { RunInputs } from '../../core/records/schema.ts';
import { encodeDatasetRows, encodeDatasetTokens, rowsFile, tokensFile } from '../../models/dataset-fact.ts';
import { tokenizeRows } from '../../models/dataset.ts';
import type { BatchTokenizer } from '../../models/tokenizer.ts';
import type { PreparePorts } from './prepare-ports.ts';
import { checkedRows, linesOf, loadRows, notesOf, takesRandomRows, tokenizeOptionsOf } from './rows.ts';
import type { RowsPart, Subset } from './rows.ts';

export interface StoredRows {
  readonly digest: Digest;
  readonly count: number;
  readonly notes: readonly string[];
}

/** Throws InvalidInputError with file and row number. */
export async function storeRowsLike(
  before: RunInputs,
  recipe: Recipe,
  part: RowsPart,
  tokenizer: BatchTokenizer,
  ports: PreparePorts,
): Promise<StoredRows> {
  const known = part === 'train' ? before.train : (before.validation ?? before.train);
  return (await datasetFormat(ports.store, known)) === 1
    ? storeWhole(recipe, part, tokenizer, ports)
    : storeAsKnown(known, recipe, part, tokenizer, ports);
}

/**
 * An older version took the first rows where this one takes random ones: the run keeps its own where the files give
 * them.
 */
async function storeAsKnown(
  known: Digest,
  ...reading: [recipe: Recipe, part: RowsPart, tokenizer: BatchTokenizer, ports: PreparePorts]
): Promise<StoredRows> {
  const [recipe, part] = reading;
  if (!takesRandomRows(recipe, part)) return storeInBlocks('verl', ...reading);
  const first = await storeInBlocks('first', ...reading);
  return first.digest === known ? first : storeInBlocks('verl', ...reading);
}

async function storeInBlocks(
  subset: Subset,
  recipe: Recipe,
  part: RowsPart,
  tokenizer: BatchTokenizer,
  { store, home, now }: PreparePorts,
): Promise<StoredRows> {
  const blocks = new WaitingBlocks(join(home, 'cache'));
  try {
    const put = (bytes: Uint8Array, rows: number) => blocks.add(bytes, rows);
    const rows = await loadRows(recipe, part, tokenizer, now, put, { subset });
    return { digest: await blocks.store(store, rows.rules), count: rows.count, notes: linesOf(rows) };
  } finally {
    await blocks.remove();
  }
}

/** Rows in format 1. */
async function storeWhole(
  recipe: Recipe,
  part: RowsPart,
  tokenizer: BatchTokenizer,
  { store, now }: PreparePorts,
): Promise<StoredRows> {
  const options = tokenizeOptionsOf(recipe, part, now);
  const { dataset, counts } = await tokenizeRows(checkedRows(recipe, part), tokenizer, options);
  const digest = await storeDataset(store, {
    [tokensFile]: encodeDatasetTokens(dataset),
    [rowsFile]: encodeDatasetRows(dataset),
  });
  return { digest, count: counts.rows, notes: notesOf(counts, part, options) };
}
