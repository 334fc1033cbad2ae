/** Rows as JSONL files. */
import { readFileSync } from 'node:fs';
import { InvalidInputError } from '../../core/errors.ts';
import { isTree } from '../../core/recipe/merge.ts';
import { writeNewFile } from '../new-file.ts';

/** Does what `writeNewFile` does; a row is one line of JSON. */
export function writeRows(file: string, rows: readonly unknown[]): number {
  return writeNewFile(file, rows.map((row) => `${JSON.stringify(row)}\n`).join(''));
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
