/**
 * Writes many chat rows as pyarrow writes them: Parquet with a million rows in a row group; and the same rows as JSONL.
 */
import { createWriteStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import type { SchemaElement } from 'hyparquet';
import { fileWriter, ParquetWriter } from 'hyparquet-writer';
import { uniform } from '../model.ts';

/** Rows in a row group, pyarrow's default. */
const groupRows = 1_000_000;
const promptCharacters = 400;
const words =
  'the sum of apples that Anna bought and Ben sold is asked for how many are left when a quarter of them was eaten'.split(
    ' ',
  );

interface ChatRow {
  readonly data_source: string;
  readonly prompt: readonly { readonly role: string; readonly content: string }[];
  readonly ability: string;
  readonly reward_model: { readonly style: string; readonly ground_truth: string };
  readonly extra_info: { readonly index: string };
}

const text = (name: string): SchemaElement => ({
  name,
  type: 'BYTE_ARRAY',
  converted_type: 'UTF8',
  repetition_type: 'OPTIONAL',
});
const group = (name: string, children: number): SchemaElement => ({
  name,
  num_children: children,
  repetition_type: 'OPTIONAL',
});

/** The columns of DAPO-Math-17k. */
const schema: readonly SchemaElement[] = [
  { name: 'schema', num_children: 5 },
  text('data_source'),
  { ...group('prompt', 1), converted_type: 'LIST' },
  { name: 'list', num_children: 1, repetition_type: 'REPEATED' },
  group('element', 2),
  text('role'),
  text('content'),
  text('ability'),
  group('reward_model', 2),
  text('style'),
  text('ground_truth'),
  group('extra_info', 1),
  text('index'),
];

const columns = ['data_source', 'prompt', 'ability', 'reward_model', 'extra_info'] as const;

/** The same number writes the same rows. */
export async function writeParquet(path: string, rows: number): Promise<void> {
  const writer = new ParquetWriter({ writer: fileWriter(path), schema: [...schema] });
  const made = chatRows(rows);
  for (let written = 0; written < rows; written += groupRows) {
    const part: ChatRow[] = [];
    while (part.length < Math.min(groupRows, rows - written)) part.push(made.next().value as ChatRow);
    const columnData = columns.map((name) => ({ name, data: part.map((row) => row[name]) }));
    await writer.write({ columnData, rowGroupSize: part.length });
  }
  await writer.finish();
}

/** The rows of `writeParquet`, a line each. */
export const writeJsonl = (path: string, rows: number): Promise<void> =>
  pipeline(linesOf(rows), createWriteStream(path));

function* linesOf(rows: number): Generator<string> {
  let lines = '';
  for (const row of chatRows(rows)) {
    lines += `${JSON.stringify(row)}\n`;
    if (lines.length < 1 << 20) continue;
    yield lines;
    lines = '';
  }
  yield lines;
}

function* chatRows(rows: number): Generator<ChatRow, undefined> {
  const random = uniform(42);
  for (let i = 0; i < rows; i++) {
    let content = `${i}:`;
    while (content.length < promptCharacters) content += ` ${words[Math.floor(random() * words.length)]}`;
    yield {
      data_source: 'bench',
      prompt: [{ role: 'user', content: content.slice(0, promptCharacters) }],
      ability: 'MATH',
      reward_model: { style: 'rule', ground_truth: String(i) },
      extra_info: { index: `row-${i}` },
    };
  }
  return undefined;
}
