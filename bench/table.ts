/** Rows as Markdown, for the terminal and for the docs. */
import type { RowResult } from './measurement.ts';

const heads = ['row', 'value', 'unit', 'of peak', 'peer', 'peer value', 'ratio'];

export function renderTable(rows: readonly RowResult[]): string {
  const lines = [heads, ...rows.map(cellsOf)];
  const widths = heads.map((_, column) => Math.max(...lines.map((line) => (line[column] ?? '').length)));
  const text = (line: readonly string[]) =>
    `| ${line.map((cell, column) => (isNumber(column) ? cell.padStart(widths[column] ?? 0) : cell.padEnd(widths[column] ?? 0))).join(' | ')} |`;
  const rule = `|${widths.map((width, column) => (isNumber(column) ? `${'-'.repeat(width + 1)}:` : '-'.repeat(width + 2))).join('|')}|`;
  const [head = heads, ...body] = lines;
  return [text(head), rule, ...body.map(text)].join('\n');
}

const isNumber = (column: number) => heads[column]?.endsWith('value') === true || heads[column] === 'ratio';

function cellsOf({ name, value, unit, limit, share, peer, peerValue, ratio }: RowResult): string[] {
  return [
    name,
    show(value, unit),
    unit.replace('bytes', 'MiB'),
    share === undefined ? '' : `${Math.round(100 * share)} % of ${limit?.split('.')[1]}`,
    peer ?? '',
    peerValue === undefined ? '' : show(peerValue, unit),
    ratio === undefined ? '' : ratio.toFixed(2),
  ];
}

function show(value: number, unit: RowResult['unit']): string {
  const shown = unit.startsWith('bytes') ? value / 2 ** 20 : value;
  return Math.abs(shown) >= 100 ? Math.round(shown).toLocaleString('en-US') : String(Number(shown.toPrecision(3)));
}
