/** Tokens over a recipe's limit: refused or cut. */
import type { InvalidInputError } from '../../core/errors.ts';
import type { RowKind } from '../../core/run-kinds.ts';
import type { RowFault } from './render.ts';
import { truncate, truncatePair } from './truncate.ts';
import type { Truncation } from './truncate.ts';

/** A row as tokens. `response`: what is to be learnt (kind: sft), or the chosen response of a pair. */
export interface Sequence {
  readonly prompt: Int32Array;
  readonly response?: Int32Array;
  /** The other response of a pair. A cut can leave it another prompt. */
  readonly rejected?: { readonly prompt: Int32Array; readonly response: Int32Array };
}

/** Length of the prompt and the response; of a pair the longer response counts. */
export const lengthOf = ({ prompt, response, rejected }: Sequence): number =>
  prompt.length + Math.max(response?.length ?? 0, rejected?.response.length ?? 0);

/** Cuts what is longer; the responses of a pair each with their prompt. */
export function atLimit(sequence: Sequence, maxLength: number, side: Exclude<Truncation, 'error'>): Sequence {
  const { prompt, response, rejected } = sequence;
  if (response === undefined) return { prompt: truncate(prompt, maxLength, side) };
  const [cutPrompt, cutResponse] = truncatePair(prompt, response, maxLength, side);
  if (rejected === undefined) return { prompt: cutPrompt, response: cutResponse };
  const [otherPrompt, otherResponse] = truncatePair(rejected.prompt, rejected.response, maxLength, side);
  return { prompt: cutPrompt, response: cutResponse, rejected: { prompt: otherPrompt, response: otherResponse } };
}

/** What is said of a row of `length` tokens when nothing may be cut. */
export function overlong(fault: RowFault, kind: RowKind, length: number, maxLength: number): InvalidInputError {
  const [what, key] =
    kind === 'rl' ? ['the prompt has', 'data.max_prompt_length'] : ['prompt and response have', 'data.max_length'];
  const hint = `Raise ${key}, set data.truncation to left, right or middle, or data.filter_overlong_prompts to true.`;
  return fault(`${what} ${length} tokens, ${key} is ${maxLength}`, undefined, hint);
}
