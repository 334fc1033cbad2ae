/**
 * Rows of GSM8K and MATH as verl's preparation scripts make them (examples/data_preprocess): prompt as a chat message
 * with an instruction, data source, ability, ground truth, split and index. Other columns of a row stay.
 */
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { InvalidInputError } from '../../core/errors.ts';
import { gsm8kInstruction, rawRows, rowError } from '../../models/dataset.ts';
import type { RawRow } from '../../models/dataset.ts';
import { isObject, show } from '../../models/fields.ts';
import { boxedAnswer } from '../../rewards/math-reward.ts';
import type { PreparedSplit, PreparedDataset } from './preparations.ts';

export interface VerlRow {
  readonly data_source: string;
  readonly prompt: readonly { readonly role: 'user'; readonly content: string }[];
  readonly ability: 'math';
  readonly reward_model: { readonly style: 'rule'; readonly ground_truth: string };
  readonly extra_info: Readonly<Record<string, unknown>>;
}

interface Source {
  readonly dataSource: string;
  /** Put behind the question, after a blank. */
  readonly instruction: string;
  readonly question: string;
  readonly solution: string;
  readonly answerOf: (solution: string) => string | undefined;
  /** What a solution must have. */
  readonly expected: string;
  /** Are the question and its solution kept beside the index? */
  readonly keepsTexts: boolean;
}

const sources: Readonly<Record<PreparedDataset, Source>> = {
  gsm8k: {
    dataSource: 'openai/gsm8k',
    instruction: gsm8kInstruction,
    question: 'question',
    solution: 'answer',
    // The first one, as in verl.
    answerOf: (solution) => /#### (-?[0-9.,]+)/.exec(solution)?.[1]?.replaceAll(',', ''),
    expected: '"#### " and a number',
    keepsTexts: true,
  },
  math: {
    dataSource: 'DigitalLearningGmbH/MATH-lighteval',
    instruction: String.raw`Let's think step by step and output the final answer within \boxed{}.`,
    question: 'problem',
    solution: 'solution',
    answerOf: boxedAnswer,
    expected: String.raw`\boxed{ and an answer }`,
    keepsTexts: false,
  },
};

/**
 * Reads files of rows, and folders of such files, in the order of their names.
 * Throws InvalidInputError with file and row for a row without a question or an answer.
 */
export async function prepareRows(
  preparation: PreparedDataset,
  paths: readonly string[],
  split: PreparedSplit,
): Promise<VerlRow[]> {
  const source = sources[preparation];
  const rows: VerlRow[] = [];
  for (const path of paths) {
    const before = rows.length;
    for (const file of await filesIn(path))
      for await (const raw of await rawRows(file)) rows.push(verlRow(source, raw, { split, index: rows.length }));
    if (rows.length === before) throw new InvalidInputError(`${path}: there are no rows`, { where: path });
  }
  return rows;
}

function verlRow(source: Source, raw: RawRow, place: { readonly split: string; readonly index: number }): VerlRow {
  const { plain: row } = raw;
  if (!isObject(row))
    throw rowError(raw, `expected an object with ${source.question} and ${source.solution}, found ${show(row)}`);
  const question = textOf(raw, row, source.question);
  const solution = textOf(raw, row, source.solution);
  const answer = source.answerOf(solution);
  if (answer === undefined || answer.trim() === '')
    throw rowError(raw, `${source.solution}: expected ${source.expected}, found ${show(solution)}`);
  const { [source.question]: _, [source.solution]: __, ...others } = row;
  return {
    ...others,
    data_source: source.dataSource,
    prompt: [{ role: 'user', content: `${question} ${source.instruction}` }],
    ability: 'math',
    reward_model: { style: 'rule', ground_truth: answer },
    extra_info: { ...place, ...(source.keepsTexts && { answer: solution, question }) },
  };
}

function textOf(raw: RawRow, row: Readonly<Record<string, unknown>>, column: string): string {
  const value = row[column];
  if (typeof value === 'string' && value.trim() !== '') return value;
  throw rowError(raw, `${column}: expected text, found ${show(value)}`);
}

const readable = /\.(?:parquet|(?:jsonl|ndjson|json)(?:\.gz)?)$/i;
const byName = new Intl.Collator('en', { numeric: true });

/** The file itself, or those in a folder and its folders. */
async function filesIn(path: string): Promise<string[]> {
  const found = await stat(path).catch((cause: unknown) => {
    throw new InvalidInputError(`${path}: there is no such file`, { where: path, cause });
  });
  if (!found.isDirectory()) return [path];
  const names = await readdir(path, { recursive: true });
  return names
    .filter((name) => readable.test(name))
    .sort(byName.compare)
    .map((name) => join(path, name));
}
