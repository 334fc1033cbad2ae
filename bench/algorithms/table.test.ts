/** How a finished run is judged, and how results are shown. */
import { describe, expect, it } from 'vitest';
import { absent, checked, expect as expectThat, textOf } from './checks.ts';
import { documentOf } from './document.ts';
import type { AlgorithmEntry } from './entry.ts';
import { judge } from './judge.ts';
import type { Observed } from './observed.ts';
import { readOptions } from './options.ts';
import type { AlgorithmResult } from './result.ts';
import { tableHead, tableRow } from './table.ts';

const entry: AlgorithmEntry = {
  name: 'Test',
  formula: 'A = |s|',
  paper: { by: 'Nobody', year: 2025, arxiv: '0000.00000' },
  mechanism: [expectThat('sum of', 'actor/pg_clipfrac', '>', 0)],
};

function observed(changes: { readonly series?: Record<string, number[]>; readonly after?: number } = {}): Observed {
  const series = {
    'record/optimizer_steps/actor': [4, 4],
    'training/skipped_steps': [0, 0],
    'actor/pg_clipfrac': [0, 0.01],
    ...changes.series,
  };
  const validations = [0.3, changes.after ?? 0.6].map((accuracy) => ({ accuracy, questions: 600 }));
  return { iterations: 2, series: new Map(Object.entries(series)), validations };
}

const failed = (given: Observed, of = entry) => judge(of, given, true).checks.filter(({ ok }) => !ok);

describe('a run', () => {
  it('passes when it learnt and its mechanism left a trace', () => {
    expect(failed(observed())).toEqual([]);
    const { before, after } = judge(entry, observed(), true);
    expect(before?.error).toBeCloseTo(Math.sqrt((0.3 * 0.7) / 600), 12);
    expect(after?.value).toBe(0.6);
  });

  it('fails when accuracy hardly rises, or by less than two standard errors', () => {
    expect(failed(observed({ after: 0.39 })).map(({ text }) => text)).toEqual(['accuracy rises by >= 0.1']);
    const few = {
      ...observed({ after: 0.5 }),
      validations: [0.3, 0.5].map((accuracy) => ({ accuracy, questions: 20 })),
    };
    expect(failed(few).map(({ text }) => text)).toEqual(['accuracy rises by > 2 standard errors']);
    expect(failed({ ...observed(), validations: [] })).toHaveLength(1);
  });

  it('fails when its mechanism did nothing, took fewer steps, or skipped one', () => {
    const wrong = (series: Record<string, number[]>) => failed(observed({ series })).map(({ text }) => text);
    expect(wrong({ 'actor/pg_clipfrac': [0, 0] })).toEqual(['sum of actor/pg_clipfrac > 0']);
    expect(wrong({ 'record/optimizer_steps/actor': [4, 1] })).toEqual(['last record/optimizer_steps/actor >= 4']);
    expect(wrong({ 'training/skipped_steps': [0, 1] })).toEqual(['sum of training/skipped_steps <= 0']);
  });

  it('of another kind passes when its metric is high enough at the end', () => {
    const pairs = { ...entry, result: { metric: 'val/pair_accuracy', atLeast: 0.8 } };
    const given = (values: number[]) => ({ ...observed({ series: { 'val/pair_accuracy': values } }), validations: [] });
    expect(failed(given([0.5, 0.85]), pairs)).toEqual([]);
    expect(judge(pairs, given([0.5, 0.85]), false)).toMatchObject({ before: { value: 0.5 }, after: { value: 0.85 } });
    expect(failed(given([0.9, 0.7]), pairs)).toHaveLength(1);
    expect(failed(given([]), pairs)).toHaveLength(1);
  });
});

describe('a check', () => {
  const series = new Map([
    ['a', [4, -6, 2]],
    ['broken', [1, Number.NaN]],
  ]);

  it.each([
    ['first', 4],
    ['last', 2],
    ['lowest', -6],
    ['highest', 4],
    ['largest size of', 6],
    ['mean of', 0],
    ['sum of', 0],
    ['last / first of', 0.5],
  ] as const)('takes the %s value', (of, value) => {
    expect(checked(expectThat(of, 'a', '<=', value), series)).toMatchObject({ value, ok: true });
    expect(checked(expectThat(of, 'a', '>=', value), series).ok).toBe(true);
    expect(checked(expectThat(of, 'a', '<', value), series).ok).toBe(false);
    expect(checked(expectThat(of, 'a', '>', value), series).ok).toBe(false);
  });

  it('fails without values and with one that is not finite; the check for absence is the opposite', () => {
    expect(checked(expectThat('sum of', 'b', '<=', 0), series)).toMatchObject({ value: null, ok: false });
    expect(checked(expectThat('first', 'broken', '>', 0), series).ok).toBe(false);
    expect(checked(absent('b'), series)).toEqual({ text: 'no b', value: null, ok: true });
    expect(checked(absent('a'), series)).toMatchObject({ value: 4, ok: false });
  });

  it('is shown as a sentence', () => {
    expect(textOf(expectThat('last / first of', 'critic/vf_loss', '<', 0.5))).toBe(
      'last / first of critic/vf_loss < 0.5',
    );
  });
});

const failedResult: AlgorithmResult = {
  recipe: 'reinforce-plus-plus-baseline',
  seed: 2,
  passed: false,
  seconds: 123.45,
  processorSeconds: 12.3,
  iterations: 28,
  judgement: judge(entry, observed({ series: { 'actor/pg_clipfrac': [] } }), true),
  errors: [
    'it took 123.4 s, more than 20 s, and 12.3 s of processor time; on a machine with other work use --seconds 0',
  ],
};

describe('the table', () => {
  it('has at most 80 columns, and says under a failed run what was expected and what came', () => {
    const lines = [tableHead(), tableRow(failedResult), tableRow({ ...failedResult, passed: true })]
      .join('\n')
      .split('\n');
    expect(lines.filter((line) => line.length > 80)).toEqual([]);
    expect(lines.join('\n')).toContain('0.300 -> 0.600 ± 0.020');
    expect(lines.join('\n')).toContain('expected sum of actor/pg_clipfrac > 0, got no value');
    expect(lines).toHaveLength(6);
  });
});

describe('the page', () => {
  it('has results, formulas and checks of the recipes that ran, and the others as waiting', () => {
    const page = documentOf({
      recipes: [
        { name: 'ran', file: '', entry },
        { name: 'waits', file: '', entry: { ...entry, waitsFor: 'algorithm.new' } },
      ],
      results: [1, 2].map((seed) => ({ ...failedResult, recipe: 'ran', seed, passed: true })),
      machine: 'a machine',
      command: 'npm run algorithms',
    });
    expect(page).toContain('with the seeds 1 and 2.');
    expect(page).toContain(
      '| [ran](../../examples/10-algorithms/ran.yaml) | 0.300 ± 0.019 | 0.600 ± 0.020, 0.600 ± 0.020 | 28 | 123.5, 123.5 |',
    );
    expect(page).toContain('`A = \\|s\\|` | [Nobody 2025](https://arxiv.org/abs/0000.00000) |');
    expect(page).toContain('`sum of actor/pg_clipfrac > 0` | none, none |');
    expect(page).toMatch(/## Not run yet[\s\S]*\| \[waits\].* \| `algorithm\.new` \|/);
  });
});

describe('the command line', () => {
  it('runs all recipes with two seeds and writes the page, and some without it', () => {
    const all = { recipes: [], json: false, seeds: [1, 2], secondsLimit: 20, document: true };
    expect(readOptions([])).toEqual(all);
    expect(readOptions(['--no-document'])).toEqual({ ...all, document: false });
    expect(readOptions(['grpo', '--seeds', '3', '--seconds', '0', '--json'])).toEqual({
      ...{ recipes: ['grpo'], json: true, seeds: [3], secondsLimit: 0, document: false },
    });
  });

  it('refuses unknown options, and values that are none', () => {
    expect(() => readOptions(['--fast'])).toThrow(/fast/);
    expect(() => readOptions(['--seeds', 'a'])).toThrow('--seeds a: expected whole numbers');
    expect(() => readOptions(['--seconds', '-1'])).toThrow(/seconds/);
  });
});
