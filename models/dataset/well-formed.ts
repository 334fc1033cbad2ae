/** Text that a tokenizer and a scorer can take as it is: every surrogate has its other half. */
import { type RowPlace, rowError } from './raw.ts';

/** A row's columns that are tokenised, and what its answer is compared with. */
interface Texts extends RowPlace {
  readonly prompt: unknown;
  readonly tools?: unknown;
  readonly response?: unknown;
  readonly rejected?: unknown;
  readonly groundTruth?: unknown;
}

/** Node 20 has it; TypeScript's library for ES2023 does not know it. */
const isWellFormed = (text: string): boolean => (text as unknown as { isWellFormed(): boolean }).isWellFormed();

const half = /\p{Surrogate}/u;

/**
 * Throws InvalidInputError for a row with half a surrogate pair in a text that is tokenised or compared. JSON can write
 * one (`\ud800`), no encoding has one: the tokenizer or the scorer would get another text than the row has.
 */
export function assertWellFormed(row: Texts): void {
  for (const key of ['prompt', 'tools', 'response', 'rejected', 'groundTruth'] as const) {
    const broken = brokenText(row[key]);
    if (broken === undefined) continue;
    const at = half.exec(broken)?.index ?? 0;
    const code = broken.charCodeAt(at).toString(16);
    throw rowError(
      row,
      `${key === 'groundTruth' ? 'reward_model.ground_truth' : key}: the text has half a character, the lone surrogate \\u${code}, at position ${at + 1}`,
      undefined,
      'it was cut in the middle of an emoji, or decoded wrongly: repair the text, or leave the row out',
    );
  }
}

function brokenText(value: unknown): string | undefined {
  if (typeof value === 'string') return isWellFormed(value) ? undefined : value;
  if (typeof value !== 'object' || value === null) return undefined;
  if (Array.isArray(value)) return firstBroken(value);
  if (value instanceof Map) return firstBroken(value.keys()) ?? firstBroken(value.values());
  return firstBroken(Object.keys(value)) ?? firstBroken(Object.values(value));
}

function firstBroken(values: Iterable<unknown>): string | undefined {
  for (const value of values) {
    const broken = brokenText(value);
    if (broken !== undefined) return broken;
  }
  return undefined;
}
