/** Rows as JSONL files. */
import { randomBytes } from 'node:crypto';
import { linkSync, lstatSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { InvalidInputError } from '../../core/errors.ts';
import { isTree } from '../../core/recipe/merge.ts';

/**
 * The file appears when it is complete. One that holds the same rows already is left as it is. Throws InvalidInputError
 * when anything else is in its place.
 */
export function writeRows(file: string, rows: readonly unknown[]): number {
  const text = rows.map((row) => `${JSON.stringify(row)}\n`).join('');
  const partial = `${file}.partial-${randomBytes(8).toString('hex')}`;
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(partial, text, { flag: 'wx' });
  try {
    linkSync(partial, file); // a rename would replace a file of the user's
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error;
    if (!holds(file, text)) throw occupied(file);
  } finally {
    rmSync(partial);
  }
  return Buffer.byteLength(text);
}

function holds(file: string, text: string): boolean {
  return lstatSync(file).isFile() && readFileSync(file, 'utf8') === text;
}

function occupied(file: string): InvalidInputError {
  return new InvalidInputError(`${file}: expected a new file, but something else is there`, {
    where: file,
    hint: 'Choose another file with --out. Nothing there was changed.',
  });
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
