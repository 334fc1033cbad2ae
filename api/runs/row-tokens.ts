/** Tokens of rows that a store keeps as text. The verifier compares them with the sampled ones. */
import type { Store } from '../../core/ports/store.ts';
import { readDataset } from '../../log/inputs/datasets.ts';
import { modelFolder } from '../../log/inputs/model-facts.ts';
import { BlockCache, openDataset } from '../../models/dataset-rows.ts';
import type { Dataset } from '../../models/dataset-rows.ts';
import { openTokenizer } from '../../models/tokenizer.ts';
import type { Tokenise } from '../ledger/inputs.ts';

const cacheBytes = 64 * 1024 * 1024;

/** `cache`: folder for copies of tokenizers from remote stores. */
export function tokenisedBy(store: Store, cache: string): Tokenise {
  const blocks = new BlockCache(cacheBytes);
  const open = new Map<string, Promise<Dataset>>();
  return async (dataset, model, rows) => {
    const opening = open.get(dataset) ?? readDataset(store, dataset).then((stored) => openDataset(stored, blocks));
    open.set(dataset, opening);
    const tokenizer = await openTokenizer(await modelFolder(store, model, cache, 'text'));
    return (await opening).sequences(rows, tokenizer);
  };
}
