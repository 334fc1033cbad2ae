/** Tokenizers by folder, loaded once per thread, because a large vocabulary takes a tenth of a second to read. */
import { openTokenizer } from './tokenizer.ts';
import type { Tokenizer } from './tokenizer.ts';

const loaded = new Map<string, Promise<Tokenizer>>();

export function tokenizerOf(folder: string): Promise<Tokenizer> {
  let tokenizer = loaded.get(folder);
  if (tokenizer === undefined) {
    tokenizer = openTokenizer(folder);
    loaded.set(folder, tokenizer);
    tokenizer.catch(() => loaded.delete(folder));
  }
  return tokenizer;
}
