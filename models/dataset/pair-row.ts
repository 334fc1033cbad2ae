/**
 * A row of a preference dataset in the forms that TRL reads: a prompt with a chosen and a rejected response, each of
 * text or of chat messages. Messages may hold the whole conversation; the prompt is then what both have in common
 * before their last message, and a prompt beside them (UltraFeedback's) is not read.
 */
import { at } from '../../core/at.ts';
import type { InvalidInputError } from '../../core/errors.ts';
import { show } from '../fields.ts';
import type { ChatMessage } from '../template.ts';
import { type RawRow, rowError } from './raw.ts';

export interface PairParts {
  readonly prompt: string | readonly ChatMessage[];
  /** The chosen one. */
  readonly response: string | ChatMessage;
  readonly rejected: string | ChatMessage;
}

/** Columns of the responses. */
export interface PairColumns {
  readonly promptKey: string;
  readonly chosenKey?: string;
  readonly rejectedKey?: string;
}

export interface PairReader {
  /** Absent: the row has no prompt of its own. */
  readonly prompt: PairParts['prompt'] | undefined;
  /** The chat messages of a column. Throws for a column without any. */
  readonly messages: (key: string) => readonly ChatMessage[];
}

/** Throws InvalidInputError with file and row. */
export function pairOf(
  raw: RawRow,
  row: Readonly<Record<string, unknown>>,
  { promptKey, chosenKey = 'chosen', rejectedKey = 'rejected' }: PairColumns,
  { prompt, messages }: PairReader,
): PairParts {
  const [chosen, rejected] = [row[chosenKey], row[rejectedKey]];
  if (typeof chosen === 'string' && typeof rejected === 'string') {
    if (prompt === undefined) throw noPrompt(raw, promptKey);
    return { prompt, response: chosen, rejected };
  }
  if (!Array.isArray(chosen) || !Array.isArray(rejected)) {
    const isChosen = typeof chosen !== 'string' && !Array.isArray(chosen);
    const [key, value] = isChosen ? [chosenKey, chosen] : [rejectedKey, rejected];
    throw rowError(
      raw,
      `${key}: expected text in ${chosenKey} and ${rejectedKey}, or chat messages in both, found ${show(value)}`,
      undefined,
      'data.chosen_key and data.rejected_key name other columns',
    );
  }
  const [ofChosen, ofRejected] = [messages(chosenKey), messages(rejectedKey)];
  const context = ofChosen.slice(0, -1);
  if (JSON.stringify(context) !== JSON.stringify(ofRejected.slice(0, -1)))
    throw rowError(raw, `${rejectedKey}: expected the messages of ${chosenKey} but for the last one`);
  const responses = { response: at(ofChosen, -1), rejected: at(ofRejected, -1) };
  for (const [key, message] of [
    [chosenKey, responses.response],
    [rejectedKey, responses.rejected],
  ] as const)
    if (message['role'] !== 'assistant')
      throw rowError(raw, `${key}: expected a last message of the assistant, found one of ${show(message['role'])}`);
  return { prompt: promptBefore(raw, prompt, context, promptKey), ...responses };
}

/** The conversation may be whole in the responses, or go on where the prompt ends. */
function promptBefore(
  raw: RawRow,
  prompt: PairReader['prompt'],
  context: readonly ChatMessage[],
  promptKey: string,
): PairParts['prompt'] {
  if (context.length === 0) {
    if (prompt === undefined) throw noPrompt(raw, promptKey);
    return prompt;
  }
  if (prompt === undefined || typeof prompt === 'string') return context;
  const isWhole = JSON.stringify(context.slice(0, prompt.length)) === JSON.stringify(prompt);
  return isWhole ? context : [...prompt, ...context];
}

const noPrompt = (raw: RawRow, promptKey: string): InvalidInputError =>
  rowError(
    raw,
    `${promptKey}: expected the prompt that both responses answer, found none`,
    undefined,
    'split texts that contain their prompt into a prompt and two responses, or give chat messages',
  );
