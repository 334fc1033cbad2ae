/** Rows as JSONL files. */
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { InvalidInputError } from '../../core/errors.ts';
import { isTree } from '../../core/recipe/merge.ts';

/** The file appears when it is complete. */
export function writeRows(file: string, rows: readonly unknown[]): number {
  const text = rows.map((row) => `${JSON.stringify(row)}\n`).join('');
  const partial = `${file}.partial-${process.pid}`;
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(partial, text);
  renameSync(partial, file);
  return Buffer.byteLength(text);
}

/** The texts of all prompts of a JSONL file; of chat messages, the contents. */
export function readPrompts(file: string): string[] {
  return readFileSync(file, 'utf8')
    .split('\n')
    .flatMap((line, index) => (line.trim() === '' ? [] : [promptOf(line, `${file}:${index + 1}`)]));
}

function promptOf(line: string, where: string): string {
  const prompt = parseRow(line, where)['prompt'];
  if (typeof prompt === 'string') return prompt;
  if (!Array.isArray(prompt)) throw new InvalidInputError('the row has no prompt', { where });
  return prompt.map((message: unknown) => (isTree(message) ? String(message['content']) : '')).join('\n');
}

/** One line of a JSONL file. Throws InvalidInputError that names the place. */
export function parseRow(line: string, where: string): Readonly<Record<string, unknown>> {
  let row: unknown;
  try {
    row = JSON.parse(line);
  } catch (cause) {
    throw new InvalidInputError('the row is not JSON', { where, cause });
  }
  if (isTree(row)) return row;
  throw new InvalidInputError('a row is a JSON object', { where });
}
