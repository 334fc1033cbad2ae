/** Tokens over a recipe's limit: refused or cut. */
import type { InvalidInputError } from '../../core/errors.ts';
import type { RowFault } from './render.ts';
import { truncate, truncatePair } from './truncate.ts';
import type { Truncation } from './truncate.ts';

/** A row as tokens. `response`: what is to be learnt (kind: sft). */
export interface Sequence {
  readonly prompt: Int32Array;
  readonly response?: Int32Array;
}

export const lengthOf = ({ prompt, response }: Sequence): number => prompt.length + (response?.length ?? 0);

/** Cuts what is longer. */
export function atLimit(sequence: Sequence, maxLength: number, side: Exclude<Truncation, 'error'>): Sequence {
  const { prompt, response } = sequence;
  if (response === undefined) return { prompt: truncate(prompt, maxLength, side) };
  const [cutPrompt, cutResponse] = truncatePair(prompt, response, maxLength, side);
  return { prompt: cutPrompt, response: cutResponse };
}

/** What is said of a row of `length` tokens when nothing may be cut. */
export function overlong(fault: RowFault, kind: 'rl' | 'sft', length: number, maxLength: number): InvalidInputError {
  const [what, key] =
    kind === 'sft' ? ['prompt and response have', 'data.max_length'] : ['the prompt has', 'data.max_prompt_length'];
  const hint = `Raise ${key}, set data.truncation to left, right or middle, or data.filter_overlong_prompts to true.`;
  return fault(`${what} ${length} tokens, ${key} is ${maxLength}`, undefined, hint);
}
