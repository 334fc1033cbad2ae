/** Text that a tokenizer drops, because it has no tokens for it: the model then never sees these characters. */
import { at } from '../../core/at.ts';
import type { BatchTokenizer } from '../tokenizer.ts';

export interface LostText {
  /** Characters of the texts, white space left out. */
  readonly characters: number;
  /** How many of them are not in the decoded tokens. */
  readonly lost: number;
  /** The most frequent lost characters, each once. */
  readonly examples: readonly string[];
}

const mostExamples = 5;

/** Encodes and decodes the texts. Differences of case, accents and Unicode form are the tokenizer's choice, no loss. */
export async function lostText(texts: readonly string[], tokenizer: BatchTokenizer): Promise<LostText> {
  const decoded = await tokenizer.decodeBatch(await tokenizer.encodeBatch(texts));
  const lost = new Map<string, number>();
  let characters = 0;
  texts.forEach((text, i) => {
    const kept = countsOf(at(decoded, i));
    for (const [character, count] of countsOf(text)) {
      characters += count;
      const missing = count - (kept.get(character) ?? 0);
      if (missing > 0) lost.set(character, (lost.get(character) ?? 0) + missing);
    }
  });
  const mostFirst = [...lost].sort(([, a], [, b]) => b - a);
  return {
    characters,
    lost: mostFirst.reduce((sum, [, count]) => sum + count, 0),
    examples: mostFirst.slice(0, mostExamples).map(([character]) => character),
  };
}

function countsOf(text: string): Map<string, number> {
  const counts = new Map<string, number>();
  for (const character of text
    .toLowerCase()
    .normalize('NFKD')
    .replace(/[\s\p{M}]/gu, ''))
    counts.set(character, (counts.get(character) ?? 0) + 1);
  return counts;
}
