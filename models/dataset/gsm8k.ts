/**
 * Rows of GSM8K (`question`, `answer`) as verl's preparation of GSM8K makes them: the prompt is the question and an
 * instruction, the ground truth is the number after `#### ` without commas.
 */
import type { RowKind } from '../../core/run-kinds.ts';
import { isObject, show } from '../fields.ts';
import { type RawRow, rowError } from './raw.ts';

/** verl's. */
export const gsm8kInstruction = 'Let\'s think step by step and output the final answer after "####".';

export interface Gsm8kOptions {
  readonly kind: RowKind;
  /** Put behind the question, after a blank; '' for none. */
  readonly instruction: string;
  /** A prompt of text in place of a message for the chat template. */
  readonly asText: boolean;
  readonly promptKey: string;
  readonly responseKey: string;
  readonly rewardFnKey: string;
}

/** The row with verl's columns. Throws InvalidInputError for one that is no row of GSM8K. */
export function gsm8kRow(raw: RawRow, options: Gsm8kOptions): RawRow {
  const { plain } = raw;
  if (!isObject(plain)) throw rowError(raw, `expected an object with question and answer, found ${show(plain)}`);
  const question = textOf(raw, plain, 'question');
  const answer = textOf(raw, plain, 'answer');
  const groundTruth = [...answer.matchAll(/#### (-?[0-9.,]+)/g)].at(-1)?.[1]?.replaceAll(',', '');
  if (groundTruth === undefined) throw rowError(raw, `answer: expected "#### " and a number, found ${show(answer)}`);
  const content = options.instruction === '' ? question : `${question} ${options.instruction}`;
  const row = {
    [options.promptKey]: options.asText ? content : [{ role: 'user', content }],
    ...(options.kind === 'sft' && { [options.responseKey]: answer }),
    [options.rewardFnKey]: 'openai/gsm8k',
    reward_model: { style: 'rule', ground_truth: groundTruth },
    extra_info: { index: raw.number - 1, question, answer },
  };
  return { ...raw, exact: row, plain: row };
}

function textOf(raw: RawRow, row: Readonly<Record<string, unknown>>, column: string): string {
  const value = row[column];
  if (typeof value === 'string' && value !== '') return value;
  throw rowError(raw, `${column}: expected text, found ${show(value)}`);
}
