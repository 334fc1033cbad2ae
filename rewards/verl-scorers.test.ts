/** What the reference data does not show: bad rows, and properties that hold for every response. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { at } from '../core/at.ts';
import { growth } from '../tests/processor-time.ts';
import { InvalidInputError } from '../core/errors.ts';
import { normalizeFinalAnswer } from './math-dapo.ts';
import { builtinScorer, SCORER_NAMES, scorerByName, scorerNameFor } from './registry.ts';
import { ROUTES } from './routing.ts';
import { toScored } from './result.ts';
import { normalizeQaAnswer } from './search-r1-like-qa-em.ts';
import type { Scored, ScorerSettings } from './types.ts';

const seed = 20_260_103;

function score(name: string, solutionStr: string, groundTruth: unknown, settings: ScorerSettings = {}): Scored {
  const input = { dataSource: 'test', solutionStr, groundTruth, extraInfo: { index: 7 } };
  return toScored(scorerByName(name)(input, settings));
}

const functions = ['gsm8k', 'math_reward', 'math_dapo', 'search_r1_like_qa_em', 'rlla'];
const settings: ScorerSettings = { experiment_name: 'qwen' };

describe('a row without a usable ground truth', () => {
  test.each(functions)('is an error of %s that names the row', (name) => {
    for (const missing of [undefined, null, {}, [1], true]) {
      expect(() => score(name, 'anything', missing, settings)).toThrow(InvalidInputError);
      expect(() => score(name, 'anything', missing, settings)).toThrow(/expects .* as ground truth/);
    }
    const error = errorOf(() => score(name, '', undefined, settings));
    expect(error).toMatchObject({ code: 'InvalidInput', where: 'row 7 of test' });
  });

  test('is one whose tool calls are no JSON', () => {
    expect(() => score('rlla', '', '<tool_call>\n{bad\n</tool_call>', settings)).toThrow(/one JSON object per line/);
  });
});

describe('every scorer', () => {
  test.each(functions)(`%s gives one of its scores to any response (seed ${seed})`, (name) => {
    const parts = [
      '\\boxed{',
      '}',
      '{',
      'Answer:',
      '#### ',
      '<answer>',
      '</answer>',
      '\\frac',
      '\\sqrt',
      '$',
      '😀',
      '5',
    ];
    const responses = fc.array(fc.constantFrom(...parts), { maxLength: 12 }).map((list) => list.join(''));
    const truth = name === 'search_r1_like_qa_em' ? { target: ['5'] } : '5';
    fc.assert(
      fc.property(responses, (response) => {
        const { score: got, columns } = score(name, response, truth, settings);
        expect(name === 'math_dapo' ? [-1, 1] : [0, 0.25, 1]).toContain(got);
        if (name !== 'rlla') expect(columns['acc']).toBe(got > 0);
      }),
      { seed },
    );
  });

  test('takes a number as ground truth', () => {
    expect(score('math_reward', '\\boxed{42}', 42).score).toBe(1);
    expect(score('math_dapo', 'Answer: 2.5', 2.5).score).toBe(1);
  });
});

describe('math_dapo', () => {
  test('refuses pause tokens that are not four integers, once it looks for a box', () => {
    expect(score('math_dapo', 'Answer: 5', '5', { pause_tokens_index: [1] }).score).toBe(1);
    expect(() => score('math_dapo', '5', '5', { pause_tokens_index: [1, 2, 3, 'x'] })).toThrow(/list of 4 integers/);
  });

  test(`normal forms have neither "=" before the end nor "$" (seed ${seed})`, () => {
    const parts = fc.constantFrom('=', '$', 'frac', 'sqrt', ' ', 'a', '1', '\\text{', '}', '\\boxed{', ',');
    fc.assert(
      fc.property(
        fc.array(parts, { maxLength: 10 }).map((list) => list.join('')),
        (text) => {
          expect(normalizeFinalAnswer(text)).not.toMatch(/[=$]/);
        },
      ),
      { seed },
    );
  });
});

describe('search_r1_like_qa_em', () => {
  test(`a normal form is its own normal form, unless a new article appears (seed ${seed})`, () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom('the', 'x', ' ', '-', 'é', 'Ö', '1') }), (text) => {
        const once = normalizeQaAnswer(text);
        expect(normalizeQaAnswer(once)).toBe(once);
      }),
      { seed },
    );
  });

  test('the form with parts of words does not punish many tags', () => {
    const response = '<answer>New York City</answer>'.repeat(11);
    expect(score('search_r1_like_qa_em', response, { target: 'York' }).score).toBe(0);
    expect(score('search_r1_like_qa_em', response, { target: 'York' }, { substring: true }).score).toBe(1);
    expect(score('search_r1_like_qa_em', response, { target: 'new york city' }).score).toBe(0.25);
  });
});

describe('rlla', () => {
  test('refuses an experiment of an unknown family', () => {
    expect(() => score('rlla', '', '<think>a</think>')).toThrow(/contains llama or qwen, got ""/);
  });

  test(`its components add up, and lie between their bounds (seed ${seed})`, () => {
    const call = fc.record({ name: fc.constantFrom('a', 'b'), parameters: fc.dictionary(fc.string(), fc.nat(2)) });
    const calls = fc.array(call, { minLength: 1, maxLength: 4 });
    const text = (list: readonly unknown[]) =>
      `<think>x</think>\n<tool_call>\n${list.map((one) => JSON.stringify(one)).join('\n')}\n</tool_call>`;
    fc.assert(
      fc.property(calls, calls, (wanted, called) => {
        const { score: total, columns } = score('rlla', text(called), text(wanted), settings);
        expect(columns['format_reward']).toBe(1);
        expect(total).toBeCloseTo(1 + Number(columns['accuracy_reward']), 12);
        expect(columns['accuracy_reward']).toBeGreaterThanOrEqual(-3);
        expect(columns['accuracy_reward']).toBeLessThanOrEqual(3);
        expect(score('rlla', text(wanted), text(wanted), settings).score).toBe(4);
      }),
      { seed },
    );
  });
});

describe('the time of a score', () => {
  const long: readonly (readonly [string, (size: number) => string])[] = [
    ['a string of a tool call without its end', (size) => `<tool_call>"${'a'.repeat(size)}</tool_call>`],
    ['blanks between words', (size) => `a${' '.repeat(size)}b`],
    ['blanks in a tool call', (size) => `<tool_call>1${' \n'.repeat(size)}2</tool_call>`],
    ['tags without an end', (size) => '<think><tool_call>\n<response>'.repeat(size)],
    ['ends of tags', (size) => `<think>${'</think>\n'.repeat(size)}\n</tool_call>`],
    ['brackets', (size) => `<tool_call>${'['.repeat(size)}</tool_call>`],
    ['braces', (size) => `\\boxed{${'{'.repeat(size)}`],
  ];
  const truths: Readonly<Record<string, unknown>> = {
    search_r1_like_qa_em: { target: '1' },
    rlla: '<think>a</think>\n<tool_call>\n{"name":"a","parameters":{}}\n</tool_call>\n<response>x</response>',
  };

  test.each(functions.flatMap((name) => long.map(([what, textOf]) => [name, what, textOf] as const)))(
    'by %s is proportional to its length: %s',
    (name, _, textOf) => {
      // Time that doubles with each letter shows itself at 24 of them, and would not end at thousands.
      for (const size of [3, 3_000])
        expect(growth((scale) => score(name, textOf(size * scale), truths[name] ?? '1', settings))).toBeLessThan(24);
    },
  );
});

describe('the routes', () => {
  test('lead to registered scorers', () => {
    for (const { scorer } of ROUTES) expect(SCORER_NAMES).toContain(scorer);
  });

  test('name each source once', () => {
    const sources = ROUTES.flatMap((route) => route.sources);
    expect(new Set(sources).size).toBe(sources.length);
  });

  test('compare names exactly, with aime as the only prefix', () => {
    expect(scorerNameFor('aime2026_x')).toBe('math_dapo');
    expect(() => scorerNameFor('AIME2024')).toThrow(/no scorer for data_source "AIME2024"/);
    expect(() => scorerNameFor('')).toThrow(/no scorer/);
    for (const source of ['codecontests', 'apps', 'codeforces', 'taco']) expect(scorerNameFor(source)).toBe('code');
  });

  test('every scorer answers to its own name, and runs where its entry says', () => {
    for (const name of SCORER_NAMES) expect(scorerNameFor(name)).toBe(name);
    expect(builtinScorer('prime_math')).toMatchObject({ type: 'python', module: 'prime_math.py' });
    expect(() => scorerByName('prime_math')).toThrow(/runs in Python/);
    expect(() => builtinScorer('toString')).toThrow(/unknown scorer/);
  });

  test('those with time limits are not declared deterministic', () => {
    const timed = SCORER_NAMES.filter((name) => !builtinScorer(name).deterministic);
    expect(timed).toEqual(['geo3k', 'prime_math', 'math_verify', 'code']);
  });
});

function errorOf(run: () => unknown): unknown {
  try {
    run();
  } catch (error) {
    return error;
  }
  return at([], 0);
}
