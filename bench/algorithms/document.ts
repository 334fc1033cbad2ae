/** docs/look-up/algorithms.md, which is made completely by `npm run algorithms`. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { packageRoot } from '../../infra/home.ts';
import { textOf } from './checks.ts';
import type { AlgorithmEntry } from './entry.ts';
import type { Estimate } from './judge.ts';
import type { AlgorithmRecipe } from './recipes.ts';
import { showNumber } from './result.ts';
import type { AlgorithmResult } from './result.ts';

/** The page's path from the root. */
export const documentPath = 'docs/look-up/algorithms.md';

export interface Measured {
  readonly recipes: readonly AlgorithmRecipe[];
  readonly results: readonly AlgorithmResult[];
  readonly machine: string;
  readonly command: string;
  /** Absent: there was none, because the machine had other work. */
  readonly secondsLimit?: number;
}

/** Returns its path from the root. */
export function writeDocument(measured: Measured): string {
  writeFileSync(join(packageRoot(), documentPath), documentOf(measured));
  return documentPath;
}

export function documentOf({ recipes, results, machine, command, secondsLimit }: Measured): string {
  const rows = recipes.flatMap(({ name, entry }) => {
    const ofRecipe = results.filter(({ recipe }) => recipe === name);
    return entry === undefined || ofRecipe.length === 0 ? [] : [{ name, entry, results: ofRecipe }];
  });
  const waiting = recipes.flatMap(({ name, entry }) => (entry?.waitsFor === undefined ? [] : [{ name, entry }]));
  return [
    introduction(rows[0]?.results.map(({ seed }) => seed) ?? []),
    conditions(command, machine, secondsLimit),
    section('Results', ['recipe', 'before', 'after', 'iterations', 'seconds', 'processor s'], rows.map(resultCells)),
    section(
      'Formulas',
      ['recipe', 'algorithm', 'its own part', 'paper'],
      rows.map(({ name, entry }) => [link(name), entry.name, `\`${entry.formula}\``, paperOf(entry)]),
      'A advantage, s score of a response, r reward of a token, V value, ρ = π/π_old, π the policy, sg: without gradient.',
    ),
    section(
      'What shows that the mechanism worked',
      ['recipe', 'check over the iterations of a run', 'values'],
      rows.flatMap(checkRows),
      'Metrics are explained in [metrics.md](metrics.md); `record/…` are counts from the records of a run.',
    ),
    ...(waiting.length === 0
      ? []
      : [
          section(
            'Not run yet',
            ['recipe', 'algorithm', 'waits for', 'paper'],
            waiting.map(({ name, entry }) => [link(name), entry.name, `\`${entry.waitsFor}\``, paperOf(entry)]),
          ),
        ]),
  ].join('\n');
}

interface Row {
  readonly name: string;
  readonly entry: AlgorithmEntry;
  readonly results: readonly AlgorithmResult[];
}

const introduction = (seeds: readonly number[]): string =>
  `# Algorithms

Every recipe of [examples/10-algorithms](../../examples/10-algorithms/README.md), run with the seeds ${seeds.join(' and ')}. They train the base of
[example 01](../../examples/01-arithmetic-grpo/README.md) on two-digit addition. \`npm run algorithms\` makes this page, and fails where a run does not learn
or its mechanism left no trace.

The numbers show that each algorithm works here; they do not say which one is better. The task is easy, and each recipe has the first
settings that worked.

- Before and after: greedy accuracy on the validation questions ± standard error, of the base and of the last policy. It must rise by 0.10 and by
  more than two standard errors of the difference.
- Every batch is trained on in four or more optimiser steps, so that losses with a probability ratio differ from each other.
- Seconds: from the request to the end of the run, with both validations and the final checkpoint, on a stack that is up. Processor seconds:
  user and system time of all processes of the stack.
- A cell with several values has one for each seed.
`;

const conditions = (command: string, machine: string, secondsLimit: number | undefined): string =>
  `${[
    `Command: \`${command}\``,
    `Machine: ${machine}`,
    secondsLimit === undefined
      ? 'The machine had other work, so the seconds are larger than on a quiet one, and they had no limit.'
      : `No run took longer than ${secondsLimit} s.`,
  ].join('\n\n')}\n`;

const resultCells = ({ name, results }: Row): string[] => [
  link(name),
  showEstimate(results[0]?.judgement?.before),
  each(results, ({ judgement }) => showEstimate(judgement?.after)),
  String(results[0]?.iterations ?? ''),
  each(results, ({ seconds }) => seconds?.toFixed(1) ?? ''),
  each(results, ({ processorSeconds }) => processorSeconds?.toFixed(1) ?? ''),
];

const checkRows = ({ name, entry, results }: Row): string[][] =>
  entry.mechanism.map((check, i) => {
    const text = textOf(check);
    const values = each(results, ({ judgement }) => {
      const value = judgement?.checks.find((one) => one.text === text)?.value;
      return value === null || value === undefined ? 'none' : showNumber(value);
    });
    return [i === 0 ? link(name) : '', `\`${text}\``, values];
  });

const each = (results: readonly AlgorithmResult[], show: (result: AlgorithmResult) => string): string =>
  results.map(show).join(', ');

const link = (name: string): string => `[${name}](../../examples/10-algorithms/${name}.yaml)`;

const paperOf = ({ paper: { by, year, arxiv } }: AlgorithmEntry): string =>
  `[${by} ${year}](https://arxiv.org/abs/${arxiv})`;

function showEstimate(estimate: Estimate | undefined): string {
  if (estimate === undefined) return '';
  const { value, error } = estimate;
  return `${value.toFixed(3)}${error === undefined ? '' : ` ± ${error.toFixed(3)}`}`;
}

function section(title: string, heads: readonly string[], rows: readonly (readonly string[])[], about = ''): string {
  const cells = (row: readonly string[]) => `| ${row.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
  return [
    `## ${title}`,
    '',
    ...(about === '' ? [] : [about, '']),
    cells(heads),
    `|${heads.map(() => '---').join('|')}|`,
    ...rows.map(cells),
    '',
  ].join('\n');
}
