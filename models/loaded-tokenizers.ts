/** Tokenizers by folder, because a large vocabulary takes a tenth of a second to read. */
import { loadedOnce } from './loaded-once.ts';
import { openTokenizer } from './tokenizer.ts';

export const tokenizerOf = loadedOnce(openTokenizer);
