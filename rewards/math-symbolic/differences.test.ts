/** The table of docs/do/scorers.md that compares math_symbolic with verl's scorers. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { scorerByName } from '../registry.ts';
import { toScored } from '../result.ts';

const page = readFileSync(fileURLToPath(new URL('../../docs/do/scorers.md', import.meta.url)), 'utf8');
const heading = '| answer | ground truth | math_symbolic | math_reward | math_dapo | why |';
const table = page.slice(page.indexOf(heading)).split('\n\n', 1)[0] ?? '';
const row = /^\| `(.+?)`(?:, then (\d+) spaces)? \| `(.+?)` \| (.) \| (.) \| (.) \|/;

const rows = table.split('\n').slice(2);

test.each(rows)('%s', (line) => {
  const [, answer = '', spaces, groundTruth, ...want] = row.exec(line) ?? [];
  const solutionStr = answer + ' '.repeat(Number(spaces ?? 0));
  const got = ['math_symbolic', 'math_reward', 'math_dapo'].map((name) => {
    const { columns } = toScored(scorerByName(name)({ dataSource: 'test', solutionStr, groundTruth }, {}));
    return columns['acc'] === true ? '✓' : '✗';
  });
  expect(got).toEqual(want);
});

test('the table has rows', () => {
  expect(rows.length).toBeGreaterThan(10);
});
