/**
 * Reads the rows that a run has stored; checks them against another recipe, as their files were checked when it
 * started.
 */
import type { Digest } from '../../core/ids.ts';
import type { Store } from '../../core/ports/store.ts';
import type { Recipe } from '../../core/recipe/index.ts';
import { readDataset } from '../../log/inputs/datasets.ts';
import { BlockCache, openDataset } from '../../models/dataset-rows.ts';
import type { ScorerRow } from '../../models/dataset-rows.ts';
import type { RowsPart } from './rows.ts';
import { scorerRules } from './scorer-rules.ts';

const cacheBytes = 16 * 1024 * 1024;
const rowsAtOnce = 1024;

/** Every row of a dataset, as scorers see it. Throws as `readDataset` does. */
export async function* storedRows(digest: Digest, store: Store): AsyncGenerator<ScorerRow> {
  const dataset = openDataset(await readDataset(store, digest), new BlockCache(cacheBytes));
  for (let first = 0; first < dataset.count; first += rowsAtOnce) {
    const length = Math.min(rowsAtOnce, dataset.count - first);
    yield* await dataset.facts(Array.from({ length }, (_, i) => first + i));
  }
}

/** Throws InvalidInputError with the number of the row, and as `storedRows` does. */
export async function checkStoredRows(recipe: Recipe, part: RowsPart, digest: Digest, store: Store): Promise<void> {
  const check = scorerRules(recipe, new Set());
  const file = `the stored rows of data.${part === 'train' ? 'train' : 'val'}_files`;
  let number = 0;
  for await (const { dataSource, groundTruth } of storedRows(digest, store)) {
    number += 1;
    check({ file, number, dataSource, groundTruth });
  }
}
