/** How long a row is, without its tokens: a row of 100 MB would be tokenised for minutes, to be refused then. */
import { rowError } from './raw.ts';
import type { Row } from './rows.ts';
import type { TokenizeOptions } from './tokenize.ts';

/** More characters than these for every token of the limit: no tokenizer has such tokens. */
const mostCharactersPerToken = 64;
/** Shorter rows are tokenised in a moment, whatever the limit is. */
const fewestHugeCharacters = 256 * 1024;
/** A row of more characters is cut by nobody: it has millions of tokens. */
const mostCharacters = 16 * 1024 * 1024;

/** Counts the characters of the prompt with its tools, and of the longer response. */
export function charactersOf({ prompt, tools, response = '', rejected = '' }: Row): number {
  return textIn(prompt) + (tools === undefined ? 0 : textIn(tools)) + Math.max(textIn(response), textIn(rejected));
}

/** Characters of all texts in a value. */
function textIn(value: unknown): number {
  if (typeof value === 'string') return value.length;
  if (typeof value !== 'object' || value === null) return 0;
  let characters = 0;
  for (const item of value instanceof Map ? value.values() : Object.values(value)) characters += textIn(item);
  return characters;
}

/**
 * Is the row left out by its length alone? Throws InvalidInputError for a row that is so long that it is over the limit
 * whatever its tokens are, where such rows are neither left out nor cut; and for one that is too long to be cut.
 */
export function isHuge(row: Row, characters: number, options: TokenizeOptions): boolean {
  const { kind, maxLength, truncation, filterOverlong } = options;
  const isOver = characters > Math.max(fewestHugeCharacters, mostCharactersPerToken * maxLength);
  if (!isOver || (!filterOverlong && truncation !== 'error' && characters <= mostCharacters)) return false;
  if (filterOverlong) return true;
  const [what, key] =
    kind === 'rl' ? ['the prompt has', 'data.max_prompt_length'] : ['prompt and response have', 'data.max_length'];
  const how =
    truncation === 'error' ? `${key} is ${maxLength} tokens` : 'rows of more than 16 Mi characters are not cut';
  throw rowError(
    row,
    `${what} ${characters} characters, ${how}`,
    undefined,
    'leave the row out, or set data.filter_overlong_prompts to true',
  );
}
