/** Writes the measured table into a document, between two marker lines. The rest of the document is written by hand. */
import { readFileSync, writeFileSync } from 'node:fs';
import { InvalidInputError } from '../core/errors.ts';
import type { InstructionClass } from '../native/index.ts';

/** The lines around a table, which may be that of one class of processor. */
const markers = (suffix: string) => [`<!-- bench:begin${suffix} -->`, `<!-- bench:end${suffix} -->`] as const;

/**
 * Replaces the text between the markers of the class (`<!-- bench:begin amx -->`), or between those without a class.
 * Throws InvalidInputError when the file has neither.
 */
export function writeDocument(
  path: string,
  measured: { readonly of: InstructionClass; readonly machine: string; readonly command: string },
  table: string,
): void {
  const text = readFileSync(path, 'utf8');
  const places = [` ${measured.of}`, ''].map(markers).map(([begin, end]) => {
    const from = text.indexOf(begin);
    return { begin, from, to: text.indexOf(end, from) };
  });
  const place = places.find(({ from, to }) => from >= 0 && to >= 0);
  if (place === undefined)
    throw new InvalidInputError(`${path}: expected the lines ${markers('').join(' and ')}`, { where: path });
  const { begin, from, to } = place;
  const body = `${begin}\n\n${measured.machine}\n\n\`${measured.command}\`\n\n${table}\n\n`;
  writeFileSync(path, text.slice(0, from) + body + text.slice(to));
}
