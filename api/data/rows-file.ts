/** Rows that commands write, and the prompts of rows that they read. */
import { isTree } from '../../core/recipe/merge.ts';
import { rawRows, rowError } from '../../models/dataset.ts';
import type { RawRow } from '../../models/dataset.ts';
import { writeNewFile } from '../new-file.ts';

/** Does what `writeNewFile` does; a row is one line of JSON. */
export function writeRows(file: string, rows: readonly unknown[]): number {
  return writeNewFile(file, rows.map((row) => `${JSON.stringify(row)}\n`).join(''));
}

/** The texts of all prompts of a file; of chat messages, the contents. Throws InvalidInputError with the row. */
export async function readRowPrompts(file: string): Promise<string[]> {
  const prompts: string[] = [];
  for await (const raw of await rawRows(file)) prompts.push(promptOf(raw));
  return prompts;
}

function promptOf(raw: RawRow): string {
  const prompt = isTree(raw.plain) ? raw.plain['prompt'] : undefined;
  if (typeof prompt === 'string') return prompt;
  if (!Array.isArray(prompt)) throw rowError(raw, 'the row has no prompt');
  return prompt.map((message: unknown) => (isTree(message) ? String(message['content']) : '')).join('\n');
}
