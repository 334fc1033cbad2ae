/** The table for the terminal: a line per run, at most 80 columns, and under a failed one what is wrong. */
import type { AlgorithmResult } from './result.ts';
import { failuresOf } from './result.ts';
import type { Estimate } from './judge.ts';

const width = 80;
/** Numbers end at the same place, texts begin there. */
const columns = [
  { head: 'recipe', width: 28, number: false },
  { head: 'seed', width: 4, number: true },
  { head: 'before -> after', width: 22, number: false },
  { head: 'it.', width: 3, number: true },
  { head: 's', width: 5, number: true },
  { head: '', width: 6, number: false },
] as const;

export const tableHead = (): string => line(columns.map(({ head }) => head));

export function tableRow(result: AlgorithmResult): string {
  const { recipe, seed, judgement, iterations, seconds, passed } = result;
  const cells = [
    recipe,
    String(seed),
    judgement === undefined ? '' : showChange(judgement.before, judgement.after),
    iterations === undefined ? '' : String(iterations),
    seconds === undefined ? '' : seconds.toFixed(1),
    passed ? 'passed' : 'FAILED',
  ];
  return [line(cells), ...(passed ? [] : failuresOf(result).flatMap((text) => wrapped(text)))].join('\n');
}

/** `0.345 -> 0.942 ± 0.010`: the standard error is that of the value after. */
function showChange(before: Estimate | undefined, after: Estimate | undefined): string {
  const error = after?.error === undefined ? '' : ` ± ${after.error.toFixed(3)}`;
  return `${before?.value.toFixed(3) ?? '     '} -> ${after?.value.toFixed(3) ?? ''}${error}`;
}

function line(cells: readonly string[]): string {
  return columns
    .map(({ width: to, number }, i) => (number ? (cells[i] ?? '').padStart(to) : (cells[i] ?? '').padEnd(to)))
    .join('  ')
    .trimEnd();
}

/** The text as an item of a list. A word that is longer than a line stays whole. */
function wrapped(text: string): string[] {
  const lines: string[] = [];
  for (const word of text.split(/\s+/)) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + 1 + word.length <= width) lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(`${lines.length === 0 ? '  - ' : '    '}${word}`);
  }
  return lines;
}
