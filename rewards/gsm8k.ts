/**
 * GSM8K (verl: `reward_score/gsm8k.py`). Only the last 300 characters count, in code points.
 *
 * strict    the last `#### <number>`, commas removed
 * flexible  the last number-like run that isn't "" or "."; commas stay
 */
import { InvalidInputError } from '../core/errors.ts';
import { groundTruthText } from './ground-truth.ts';
import { lastCodePoints } from './python-text.ts';
import type { Scorer } from './types.ts';

const TAIL = 300;

export type Gsm8kMethod = 'strict' | 'flexible';

/** The answer's text; undefined when there is none. */
export function extractGsm8k(solution: string, method: Gsm8kMethod): string | undefined {
  const tail = lastCodePoints(solution, TAIL);
  if (method === 'strict') {
    const last = [...tail.matchAll(/#### (-?[0-9.,]+)/g)].at(-1)?.[1];
    return last?.replaceAll(',', '');
  }
  if (method !== 'flexible')
    throw new InvalidInputError(`unknown method "${String(method)}"`, { hint: 'strict or flexible' });
  const runs = [...tail.matchAll(/-?[0-9.,]+/g)].map((match) => match[0]);
  // If only dots were found, the reference returns the first of them.
  return runs.findLast((run) => run !== '.') ?? runs[0];
}

/**
 * Settings: `method` (strict), `format_score` (0: for a wrong answer in the right form), `score` (1: for a right
 * answer). Also returns `acc`: is the answer right?
 */
export const gsm8k: Scorer = (input, settings) => {
  const truth = groundTruthText('gsm8k', input);
  const answer = extractGsm8k(input.solutionStr, (settings['method'] ?? 'strict') as Gsm8kMethod);
  const acc = answer === truth;
  if (answer === undefined) return { score: 0, acc };
  return { score: Number(acc ? (settings['score'] ?? 1) : (settings['format_score'] ?? 0)), acc };
};
