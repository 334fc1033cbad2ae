/**
 * Writes results into docs/look-up/learning-as-trl.md, between two marker lines for each part. The rest is written by
 * hand.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { InvalidInputError } from '../../core/errors.ts';
import { packageRoot } from '../../infra/home.ts';
import type { Part } from './options.ts';

const page = 'docs/look-up/learning-as-trl.md';

/** `lines`: what was run, and on what. Throws InvalidInputError when the page has no place for the part. */
export function writePart(part: Part, lines: readonly string[], heads: readonly string[], rows: readonly string[][]) {
  const path = join(packageRoot(), page);
  const text = readFileSync(path, 'utf8');
  const [begin, end] = [`<!-- learning:begin ${part} -->`, `<!-- learning:end ${part} -->`];
  const [from, to] = [text.indexOf(begin), text.indexOf(end)];
  if (from < 0 || to < from)
    throw new InvalidInputError(`${page}: expected the lines ${begin} and ${end}`, { where: page });
  const body = [begin, ...lines, table(heads, rows), ''].join('\n\n');
  writeFileSync(path, text.slice(0, from) + body + text.slice(to));
}

function table(heads: readonly string[], rows: readonly string[][]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  return [line(heads), `|${heads.map(() => '---').join('|')}|`, ...rows.map(line)].join('\n');
}
