import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { growth, processorMs } from '../../tests/processor-time.ts';
import { toScored } from '../result.ts';
import type { ScorerSettings } from '../types.ts';
import { finalAnswer } from './extract.ts';
import { mathSymbolic } from './index.ts';

const seed = 20_260_105;

function isRight(answer: string, truth: unknown, settings: ScorerSettings = {}): boolean {
  const input = { dataSource: 'test', solutionStr: `So \\boxed{${answer}}.`, groundTruth: truth };
  return toScored(mathSymbolic(input, settings)).score === 1;
}

describe('the final answer of a response', () => {
  test.each<[string, string | undefined]>([
    ['\\boxed{1} and then \\boxed{\\frac{1}{2}}', '\\frac{1}{2}'],
    ['\\boxed{3} or maybe \\boxed{4', '3'],
    ['\\boxed {5}', '5'],
    ['\\boxed{\\boxed{6}}', '6'],
    ['\\boxed{\\{1,2\\}}', '\\{1,2\\}'],
    ['Answer: 7', '7'],
    ['**Answer:** 8', '8'],
    ['The final answer is: 9.', '9.'],
    ['Answer: 1\nAnswer: 10 ', '10'],
    ['Answer: 11 but \\boxed{12}', '12'],
    ['<think>\\boxed{1}</think> Answer: 2', '2'],
    ['<think>\\boxed{1}', undefined],
    ['answers: 5', undefined],
    ['Answer:', undefined],
    ['Answer:\n\n14\nDone.', '14'],
    ['the value is 13', undefined],
    ['', undefined],
  ])('of %j is %j', (response, want) => {
    expect(finalAnswer(response)).toBe(want);
  });

  test('is found in linear time', () => {
    const search = (scale: number) => expect(finalAnswer('\\boxed{'.repeat(10_000 * scale))).toBeUndefined();
    expect(growth(search)).toBeLessThan(24);
  });
});

/** Pairs that are equal in both directions. */
const EQUAL: readonly [string, string][] = [
  // numbers
  ['5', '5.0'],
  ['0.5', '\\frac{1}{2}'],
  ['.5', '1/2'],
  ['0.50', '\\dfrac12'],
  ['-\\frac{1}{2}', '\\frac{-1}{2}'],
  ['1,234,567', '1234567'],
  ['1{,}234', '1234'],
  ['1\\,234.5', '1234.5'],
  ['7\\frac{3}{4}', '31/4'],
  ['7 3/4', '7.75'],
  ['3 \\times 10^{8}', '300000000'],
  ['1.5e3', '1500'],
  ['0.\\overline{3}', '\\frac{1}{3}'],
  ['0.1\\overline{6}', '1/6'],
  ['½', '0.5'],
  ['１２', '12'],
  ['−3', '-3'],
  ['+3', '3'],
  ['$42$', '42'],
  ['\\(42\\)', '42'],
  ['42.', '42'],
  ['123456789012345678901', '123456789012345678901.0'],
  // percent, units
  ['50\\%', '0.5'],
  ['50\\%', '50'],
  ['50%', '\\frac{1}{2}'],
  ['5\\text{ cm}', '5'],
  ['5 cm', '5 \\text{cm}'],
  ['10 \\mathrm{ m/s}', '10'],
  ['12 dollars', '\\$12'],
  ['\\$1,000.50', '1000.5'],
  ['90^\\circ', '90'],
  ['90°', '90^{\\circ}'],
  ['30 degrees', '30^\\circ'],
  ['5 \\text{ cm}^2', '5'],
  ['101_2', '101'],
  ['101_{2}', '101_2'],
  // expressions
  ['x+1', '1+x'],
  ['(x+1)^2', 'x^2+2x+1'],
  ['(x-3)(x+3)', 'x^{2}-9'],
  ['\\sqrt{8}', '2\\sqrt{2}'],
  ['\\sqrt{2}\\sqrt{3}', '\\sqrt6'],
  ['\\frac{1}{\\sqrt{2}}', '\\frac{\\sqrt{2}}{2}'],
  ['\\frac{1}{1+\\sqrt{2}}', '\\sqrt{2}-1'],
  ['\\sqrt[3]{16}', '2\\sqrt[3]{2}'],
  ['2\\pi', '2 \\cdot \\pi'],
  ['2π', '2\\pi'],
  ['\\pi r^2', 'r^2\\pi'],
  ['\\frac{x}{2}', 'x/2'],
  ['\\frac{x^2-1}{x-1}', 'x+1'],
  ['\\frac{1}{x}+\\frac{1}{y}', '\\frac{x+y}{xy}'],
  ['2^{n+1}', '2^{1+n}'],
  ['e^{2x}', 'e^{x+x}'],
  ['\\sin^2 x', '(\\sin x)^2'],
  ['\\log_2 x', '\\log_{2}(x)'],
  ['3+4i', '4i+3'],
  ['i^2 x', '-x'],
  ['\\sqrt{-4}', '2i'],
  ['|x-1|', '|1-x|'],
  ['2|x|', '|x|\\cdot 2'],
  ['n!', 'n!'],
  ['\\binom{n}{2}', '\\binom{n}{2}'],
  ['x_1 + x_2', 'x_2+x_{1}'],
  ['x^{10}', 'x^10'],
  ['\\sqrt{x}\\sqrt{x}', 'x'],
  ['-(x-1)', '1-x'],
  ['\\left(x+1\\right)', 'x+1'],
  // sets, points, intervals
  ['\\{1,2\\}', '\\{2, 1\\}'],
  ['1, 2', '2,1'],
  ['1 \\text{ or } 2', '1,2'],
  ['1 and 2', '\\{1,2,2\\}'],
  ['\\pm 3', '3,-3'],
  ['x = 2, x = -2', '\\pm 2'],
  ['1 \\pm \\sqrt{2}', '1-\\sqrt2, 1+\\sqrt2'],
  ['\\{5\\}', '5'],
  ['\\emptyset', '\\{\\}'],
  ['(1,2)', '\\left( 1, 2 \\right)'],
  ['(0.5, 3)', '(\\frac12,3)'],
  ['[0,1)', '[0, 1.0)'],
  ['(-\\infty, 2)', '(-∞,2)'],
  ['(-\\infty,0)\\cup(1,2]', '(1,2] \\cup (-\\infty,0)'],
  ['x \\in [0,1]', '[0,1]'],
  ['\\langle 1,2 \\rangle', '(1,2)'],
  ['\\begin{pmatrix}1\\\\2\\end{pmatrix}', '\\begin{bmatrix} 1 \\\\ 2 \\end{bmatrix}'],
  ['\\begin{pmatrix}1\\\\2\\end{pmatrix}', '(1,2)'],
  ['\\begin{pmatrix}1&0\\\\0&0.5\\end{pmatrix}', '\\begin{pmatrix}1&0\\\\0&\\frac12\\end{pmatrix}'],
  // equations and inequalities
  ['x = 5', '5'],
  ['\\text{Area} = 12', '12'],
  ['f(x) = x^2', 'x^2'],
  ['y = 2x + 1', '2x - y + 1 = 0'],
  ['(x,y) = (1,2)', '(1,2)'],
  ['x > 3', '3 < x'],
  ['x \\ge 3', '[3,\\infty)'],
  ['x<=3', '(-\\infty, 3]'],
  ['1 < x \\leq 5', '(1,5]'],
  ['5 > x > 1', '1<x<5'],
  ['2 \\le x_1', '[2, \\infty)'],
  // words
  ['\\text{yes}', 'Yes'],
  ['\\text{(C)}', 'C'],
  ['\\textbf{C}', '(C)'],
  ['Monday.', 'monday'],
  ['\\text{no solution}', 'No  solution'],
];

/** Pairs that differ in both directions. */
const DIFFERENT: readonly [string, string][] = [
  ['5', '6'],
  ['0.3333', '\\frac{1}{3}'],
  ['3.14', '\\pi'],
  ['0.5', '50'],
  ['50\\%', '5'],
  ['5 cm', '5 m'],
  ['\\$5', '5\\%'],
  ['101_2', '101_3'],
  ['101_2', '5'],
  ['123456789012345678901', '123456789012345678900'],
  ['x', 'X'],
  ['x+1', 'x-1'],
  ['\\sqrt{2}', '\\sqrt{3}'],
  ['\\sqrt{x^2}', 'x'],
  ['(1,2)', '(2,1)'],
  ['(1,2)', '[1,2]'],
  ['[0,1)', '[0,1]'],
  ['\\{1,2\\}', '\\{1,2,3\\}'],
  ['1,2', '(1,2)'],
  ['\\pm 3', '3'],
  ['x > 3', 'x < 3'],
  ['x > 3', 'x \\ge 3'],
  ['\\emptyset', '0'],
  ['3 < 5', '(3, \\infty)'],
  ['1 < 2 < 3', '(1,3)'],
  ['1 < 2x < 3', '(1,3)'],
  ['yes', 'no'],
  ['on', 'no'],
  ['C', 'B'],
  ['\\log_2 8', '\\log_3 8'],
  ['0.\\overline{3}', '0'],
  ['\\begin{vmatrix}1&2\\\\3&4\\end{vmatrix}', '\\begin{pmatrix}1&2\\\\3&4\\end{pmatrix}'],
  ['10,100,1000', '101001000'],
  ['', '0'],
];

/** The answer is not as finished as the ground truth. */
const UNFINISHED: readonly [string, string][] = [
  ['2^{10}', '1024'],
  ['84/12', '7'],
  ['\\sqrt{49}', '7'],
  ['\\frac{2}{4}', '\\frac{1}{2}'],
  ['12 + 30', '42'],
  ['5!', '120'],
  ['2x = 4', 'x = 2'],
  ['2x > 6', 'x > 3'],
];

describe('math_symbolic', () => {
  test.each(EQUAL)('%s equals %s', (a, b) => {
    expect([isRight(a, b), isRight(b, a)]).toEqual([true, true]);
  });

  test.each(DIFFERENT)('%s differs from %s', (a, b) => {
    expect(isRight(a, b)).toBe(false);
    if (a !== '') expect(isRight(b, a)).toBe(false);
  });

  test.each(UNFINISHED)('%s is not finished where the ground truth is %s, but the other way round', (a, b) => {
    expect([isRight(a, b), isRight(a, a)]).toEqual([false, true]);
    if (!b.includes('x')) expect([isRight(b, a), isRight(a, b, { calculations: true })]).toEqual([true, true]);
  });

  test('compares numbers with a tolerance where one is set', () => {
    expect(isRight('0.3333', '\\frac13', { tolerance: 1e-3 })).toBe(true);
    expect(isRight('3.1416', '\\pi', { tolerance: 1e-4 })).toBe(true);
    expect(isRight('9.79', '4\\sqrt{6}', { tolerance: 1e-3 })).toBe(true);
    expect(isRight('3.2', '\\pi', { tolerance: 1e-2 })).toBe(false);
    for (const tolerance of ['1', -1, 1, NaN])
      expect(() => isRight('1', '1', { tolerance })).toThrow(/from 0 to below 1/);
  });

  test('gives no score where there is no ground truth', () => {
    for (const truth of ['', ' ', null, undefined, {}]) expect(() => isRight('5', truth)).toThrow(/as ground truth/);
  });

  test('shows the answer that it found', () => {
    const score = (solutionStr: string) =>
      toScored(mathSymbolic({ dataSource: 'test', solutionStr, groundTruth: '5' }, {}));
    expect(score('Answer: 5')).toEqual({ score: 1, columns: { acc: true, pred: '5' } });
    expect(score('five')).toEqual({ score: 0, columns: { acc: false, pred: null } });
  });
});

describe(`properties (seed ${seed})`, () => {
  const parts = [
    ...[
      '\\frac',
      '\\sqrt',
      '{',
      '}',
      '(',
      ')',
      '[',
      ']',
      '\\{',
      '\\}',
      '|',
      '^',
      '_',
      '!',
      '+',
      '-',
      '/',
      '*',
      ',',
      '=',
    ],
    ...[
      '<',
      '\\pm',
      '\\cup',
      '\\text{ or }',
      '\\text{cm}',
      '\\%',
      '\\$',
      '1',
      '2',
      '30',
      '0',
      '.5',
      'x',
      'pi',
      '\\infty',
    ],
    ...['\\begin{pmatrix}', '\\end{pmatrix}', '\\\\', '&', 'and', '9'.repeat(50), '\\log', '\\binom', ' ', '😀'],
  ];
  const texts = fc.array(fc.constantFrom(...parts), { maxLength: 14 }).map((list) => list.join(''));
  const integers = fc.integer({ min: -1_000, max: 1_000 });

  test('any two texts are compared, each equals itself, and none takes as long as all others', () => {
    const times: number[] = [];
    fc.assert(
      fc.property(texts, texts, (a, b) => {
        const took = processorMs(() => {
          if (a.trim() !== '' && finalAnswer(`\\boxed{${a}}`) === a) expect(isRight(a, a)).toBe(true);
          if (b.trim() !== '') isRight(a, b);
        });
        times.push(took);
      }),
      { seed, numRuns: 3_000 },
    );
    expect(Math.max(...times)).toBeLessThan(times.reduce((sum, took) => sum + took, 0) / 2);
  });

  test('without calculations in the way, the order of the two does not matter', () => {
    fc.assert(
      fc.property(texts, texts, (a, b) => {
        fc.pre(a.trim() !== '' && b.trim() !== '' && finalAnswer(`\\boxed{${a}}`) === a);
        fc.pre(finalAnswer(`\\boxed{${b}}`) === b && !/[=<]/.test(a + b));
        const settings = { calculations: true };
        expect(isRight(a, b, settings)).toBe(isRight(b, a, settings));
      }),
      { seed, numRuns: 2_000 },
    );
  });

  test('fractions are equal exactly when their values are', () => {
    const bottoms = fc.integer({ min: 1, max: 60 });
    fc.assert(
      fc.property(integers, bottoms, integers, bottoms, (a, b, c, d) => {
        const same = isRight(`\\frac{${a}}{${b}}`, `${c}/${d}`, { calculations: true });
        expect(same).toBe(BigInt(a) * BigInt(d) === BigInt(c) * BigInt(b));
      }),
      { seed },
    );
  });

  test('polynomials equal their expanded form, and no other', () => {
    fc.assert(
      fc.property(integers, integers, fc.integer({ min: 1, max: 5 }), (a, b, off) => {
        const factors = `(x + ${a})(x + ${b})`;
        const expanded = (constant: number) => `x^2 + (${a + b})x + (${constant})`;
        expect(isRight(factors, expanded(a * b))).toBe(true);
        expect(isRight(factors, expanded(a * b + off))).toBe(false);
      }),
      { seed },
    );
  });

  test('roots have one form', () => {
    const small = fc.integer({ min: 1, max: 40 });
    fc.assert(
      fc.property(small, small, small, (a, b, c) => {
        expect(isRight(`\\sqrt{${a * a * b}}`, `${a}\\sqrt{${b}}`, { calculations: true })).toBe(true);
        expect(isRight(`\\sqrt{${b}}\\cdot\\sqrt{${c}}`, `\\sqrt{${b * c}}`, { calculations: true })).toBe(true);
        const quotient = `\\frac{${a}\\sqrt{${b}}}{${b}}`;
        expect(isRight(`\\frac{${a}}{\\sqrt{${b}}}`, quotient, { calculations: true })).toBe(true);
      }),
      { seed },
    );
  });

  test('sets do not depend on order, points do', () => {
    fc.assert(
      fc.property(fc.uniqueArray(integers, { minLength: 2, maxLength: 6 }), (list) => {
        const [there, back] = [list.join(', '), list.toReversed().join(', ')];
        expect(isRight(`\\{${there}\\}`, `\\{${back}\\}`)).toBe(true);
        expect(isRight(there, back)).toBe(true);
        expect(isRight(`(${there})`, `(${back})`)).toBe(false);
      }),
      { seed },
    );
  });

  test('hostile powers and factorials take no longer than a few thousand ordinary pairs', () => {
    const answers = ['9^{9^{9^9}}', '(x+y+z)^{60}', '(((1000!)!)!)', '2^{100000000}', '\\sqrt{9999999999999999999989}'];
    const ordinary = processorMs(() => EQUAL.forEach(([a, b]) => expect(isRight(a, b)).toBe(true)));
    const hostile = processorMs(() => expect(answers.filter((answer) => isRight(answer, '5'))).toEqual([]));
    expect(hostile).toBeLessThan(30 * ordinary);
  });
});
