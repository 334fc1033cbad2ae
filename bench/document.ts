/** Writes the measured table into a document, between two marker lines. The rest of the document is written by hand. */
import { readFileSync, writeFileSync } from 'node:fs';
import { InvalidInputError } from '../core/errors.ts';

const begin = '<!-- bench:begin -->';
const end = '<!-- bench:end -->';

/** Replaces the text between the markers. Throws InvalidInputError when the file has none. */
export function writeDocument(path: string, machine: string, command: string, table: string): void {
  const text = readFileSync(path, 'utf8');
  const [from, to] = [text.indexOf(begin), text.indexOf(end)];
  if (from < 0 || to < from)
    throw new InvalidInputError(`${path}: expected the lines ${begin} and ${end}`, { where: path });
  const measured = `${begin}\n\n${machine}\n\n\`${command}\`\n\n${table}\n\n`;
  writeFileSync(path, text.slice(0, from) + measured + text.slice(to));
}
