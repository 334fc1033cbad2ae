/** Rows of verl's layout, checked column by column. */
import { at } from '../../core/at.ts';
import { InvalidInputError } from '../../core/errors.ts';
import type { RowKind } from '../../core/run-kinds.ts';
import { isObject, show } from '../fields.ts';
import type { ChatMessage } from '../template.ts';
import { type Gsm8kOptions, gsm8kRow } from './gsm8k.ts';
import { knownForm } from './forms.ts';
import { pairOf } from './pair-row.ts';
import { rawRows } from './raw-rows.ts';
import { type RawRow, type RowPlace, rowError } from './raw.ts';
import { assertWellFormed } from './well-formed.ts';

/** A prompt: chat messages for the chat template, or text that is used as it is. */
export type Prompt = string | readonly ChatMessage[];

export interface Row extends RowPlace {
  readonly prompt: Prompt;
  readonly tools?: readonly unknown[];
  /** What to learn (kind: sft), or the chosen response of a pair: text, or the message of an assistant. */
  readonly response?: string | ChatMessage;
  /** The other response of a pair. */
  readonly rejected?: string | ChatMessage;
  readonly dataSource: string;
  readonly groundTruth?: unknown;
  readonly extraInfo?: unknown;
}

export interface RowColumns {
  readonly kind: RowKind;
  readonly promptKey: string;
  readonly responseKey: string;
  /** Rows need no ground truth and no data source, because no scorer reads them. */
  readonly unscored?: boolean;
  /** Column of the chosen response of pairs. Absent: `chosen` and `rejected`. */
  readonly chosenKey?: string;
  readonly rejectedKey?: string;
  readonly rewardFnKey: string;
  /** Rows of GSM8K, mapped to these columns: its instruction, and whether prompts are text. */
  readonly gsm8k?: Pick<Gsm8kOptions, 'instruction' | 'asText'>;
}

export const verlColumns = { promptKey: 'prompt', responseKey: 'response', rewardFnKey: 'data_source' } as const;

/**
 * Streams the rows of files, one file after the other. Throws InvalidInputError with file, row number, reason and what
 * was expected at the first row that is not right.
 *
 * `weights`: how often the rows of each file are taken; absent: once. With the weight w a file of n rows gives ⌊n·w⌋,
 * spread evenly: its row i, from 0, is taken ⌊(i + 1)·w⌋ − ⌊i·w⌋ times.
 */
export async function* readRows(
  files: readonly string[],
  columns: RowColumns,
  weights: readonly number[] = files.map(() => 1),
): AsyncGenerator<Row> {
  for (const [f, file] of files.entries()) {
    const weight = at(weights, f);
    let rows = 0;
    for await (const raw of await rawRows(file)) {
      const copies = Math.floor((rows + 1) * weight) - Math.floor(rows * weight);
      rows++;
      const made = madeOf(raw, columns);
      for (const one of made) assertWellFormed(one);
      for (let copy = 0; copy < copies; copy++) for (const one of made) yield one; // yield* waits twice for each
    }
    if (rows === 0) throw new InvalidInputError(`${file}: there are no rows`, { where: file });
    if (Math.floor(rows * weight) === 0)
      throw new InvalidInputError(`${file}: none of its ${rows} rows are taken with the weight ${weight}`, {
        where: file,
        hint: 'raise its number in data.train_file_weights',
      });
  }
}

/** The rows that a row of a file gives. An error also names the known form that the row has, and what to type. */
function madeOf(raw: RawRow, columns: RowColumns): readonly Row[] {
  try {
    const row = columns.gsm8k === undefined ? raw : gsm8kRow(raw, { ...columns, ...columns.gsm8k });
    return rowsOf[columns.kind](row, columns);
  } catch (error) {
    const set = { ...columns, isGsm8k: columns.gsm8k !== undefined };
    const form = error instanceof InvalidInputError ? knownForm(raw.plain, raw.file, set) : undefined;
    if (form === undefined) throw error;
    const reason = (error as InvalidInputError).message.replace(`${raw.file}, row ${raw.number}: `, '');
    throw rowError(raw, `${reason}; this is ${form.name}`, error, form.advice);
  }
}

const rowsOf: Readonly<Record<RowKind, (raw: RawRow, columns: RowColumns) => readonly Row[]>> = {
  rl: (raw, columns) => [rlRow(raw, columns)],
  sft: sftRows,
  pairs: (raw, columns) => [pairRow(raw, columns)],
};

function rlRow(raw: RawRow, columns: RowColumns): Row {
  const { exact, plain } = objects(raw);
  const reward = plain['reward_model'];
  const isScored = columns.unscored !== true;
  if (isScored && (!isObject(reward) || !Object.hasOwn(reward, 'ground_truth'))) {
    const found =
      reward === undefined || reward === null ? 'reward_model is missing' : `found reward_model ${show(reward)}`;
    const hint =
      'give each row what its scorer compares with: "reward_model": {"ground_truth": "4"}, or leave the row out';
    throw rowError(raw, `expected reward_model.ground_truth; ${found}`, undefined, hint);
  }
  return {
    ...common(raw, plain, columns, isScored),
    prompt: readPrompt(raw, exact, columns.promptKey),
    ...readTools(raw, exact),
    ...(isObject(reward) && { groundTruth: reward['ground_truth'] }),
  };
}

/** `prompt` and `response`, or `messages`: then one example for every turn of the assistant. */
function sftRows(raw: RawRow, columns: RowColumns): Row[] {
  const { exact, plain } = objects(raw);
  const base = { ...common(raw, plain, columns, false), ...readTools(raw, exact) };
  const chat = chatColumn(exact, columns);
  if (chat !== undefined) {
    const messages = readMessages(raw, columnOf(exact, chat), chat);
    const turns = messages.flatMap((message, i) => (message['role'] === 'assistant' && i > 0 ? [i] : []));
    if (turns.length === 0)
      throw rowError(raw, `${chat}: expected a turn of the assistant after another message, found none`);
    return turns.map((i) => ({ ...base, prompt: messages.slice(0, i), response: messages[i] as ChatMessage }));
  }
  const response = columnOf(exact, columns.responseKey);
  if (typeof response !== 'string')
    throw rowError(raw, `${columns.responseKey}: expected text, found ${show(response)}`);
  return [{ ...base, prompt: readPrompt(raw, exact, columns.promptKey), response }];
}

/** The column with the whole conversation, of a row that has no response of its own. */
function chatColumn(
  row: Readonly<Record<string, unknown>>,
  { promptKey, responseKey }: RowColumns,
): string | undefined {
  if (columnOf(row, promptKey) === undefined && row['messages'] !== undefined) return 'messages';
  const isChosen = promptKey !== verlColumns.promptKey && Array.isArray(columnOf(row, promptKey));
  return isChosen && (columnOf(row, responseKey) ?? undefined) === undefined ? promptKey : undefined;
}

/** A prompt with a chosen and a rejected response. */
function pairRow(raw: RawRow, columns: RowColumns): Row {
  const { exact, plain } = objects(raw);
  const prompt = columnOf(exact, columns.promptKey) ?? undefined;
  return {
    ...common(raw, plain, columns, false),
    ...readTools(raw, exact),
    ...pairOf(raw, exact, columns, {
      prompt: prompt === undefined ? undefined : readPrompt(raw, exact, columns.promptKey),
      messages: (key) => readMessages(raw, columnOf(exact, key), key),
    }),
  };
}

function common(
  raw: RawRow,
  plain: Readonly<Record<string, unknown>>,
  columns: RowColumns,
  sourceNeeded: boolean,
): Omit<Row, 'prompt'> {
  const source = columnOf(plain, columns.rewardFnKey);
  if (typeof source !== 'string' && (sourceNeeded || (source !== undefined && source !== null))) {
    const hint = `add the column; any text will do where reward.scorer or reward.custom_reward_function scores all rows. Key data.reward_fn_key names another column`;
    throw rowError(raw, `${columns.rewardFnKey}: expected text, found ${show(source)}`, undefined, hint);
  }
  const extra = plain['extra_info'] ?? undefined;
  if (extra !== undefined && !isObject(extra))
    throw rowError(raw, `extra_info: expected an object, found ${show(extra)}`);
  return {
    file: raw.file,
    number: raw.number,
    dataSource: typeof source === 'string' ? source : '',
    ...(extra === undefined ? {} : { extraInfo: extra }),
  };
}

function readPrompt(raw: RawRow, row: Readonly<Record<string, unknown>>, key: string): Prompt {
  const prompt = columnOf(row, key);
  if (typeof prompt === 'string') {
    if (prompt === '') throw rowError(raw, `${key}: the prompt is empty`);
    return prompt;
  }
  if (Array.isArray(prompt)) return readMessages(raw, prompt, key);
  throw rowError(raw, `${key}: expected text or a list of chat messages, found ${show(prompt)}`);
}

function readMessages(raw: RawRow, value: unknown, key: string): ChatMessage[] {
  if (!Array.isArray(value) || value.length === 0)
    throw rowError(raw, `${key}: expected a list of chat messages, found ${show(value)}`);
  return (value as unknown[]).map((message, i) => {
    if (!isObject(message) || typeof message['role'] !== 'string') {
      throw rowError(raw, `${key}[${i}]: expected a message with role and content, found ${show(message)}`);
    }
    const { content } = message;
    const isContent = typeof content === 'string' || Array.isArray(content) || Array.isArray(message['tool_calls']);
    if (!isContent) throw rowError(raw, `${key}[${i}].content: expected text, found ${show(content)}`);
    return message;
  });
}

function readTools(raw: RawRow, row: Readonly<Record<string, unknown>>): Pick<Row, 'tools'> {
  const tools = row['tools'] ?? undefined;
  if (tools === undefined) return {};
  if (!Array.isArray(tools)) throw rowError(raw, `tools: expected a list, found ${show(tools)}`);
  return tools.length === 0 ? {} : { tools };
}

/** A recipe may name any column, also `constructor`, which every object has. */
const columnOf = (row: Readonly<Record<string, unknown>>, name: string): unknown =>
  Object.hasOwn(row, name) ? row[name] : undefined;

function objects(raw: RawRow): { exact: Readonly<Record<string, unknown>>; plain: Readonly<Record<string, unknown>> } {
  const { plain } = raw;
  const exact: unknown = raw.exact instanceof Map ? Object.fromEntries(raw.exact as Map<string, unknown>) : raw.exact;
  if (!isObject(exact) || !isObject(plain))
    throw rowError(raw, `expected an object with a column per key, found ${show(plain)}`);
  return { exact, plain };
}
