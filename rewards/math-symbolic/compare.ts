/** Are two answers equal? */
import { at } from '../../core/at.ts';
import * as algebra from './algebra.ts';
import type { Expression } from './algebra.ts';
import { isName, readAnswer, sideOf, type Answer } from './answer.ts';
import { areEqualQuantities, areEqualValues, type Comparison } from './quantity.ts';

type Of<T extends Answer['type']> = Extract<Answer, { type: T }>;

export function areEqualAnswers(given: Answer, truth: Answer, rules: Comparison): boolean {
  const [a, b] = [withoutNames(given, truth), withoutNames(truth, given)];
  const form = FORMS.find(({ accepts }) => accepts(a) && accepts(b));
  if (form !== undefined) return orFalse(() => form.areEqual(a, b, rules));
  return inOtherForms(a, b, rules);
}

interface Form {
  accepts(answer: Answer): boolean;
  areEqual(given: Answer, truth: Answer, rules: Comparison): boolean;
}

function form<T extends Answer['type']>(
  type: T,
  areEqual: (given: Of<T>, truth: Of<T>, rules: Comparison) => boolean,
): Form {
  return {
    accepts: (answer) => answer.type === type,
    areEqual: (given, truth, rules) => areEqual(given as Of<T>, truth as Of<T>, rules),
  };
}

const FORMS: readonly Form[] = [
  form('quantity', (a, b, rules) => areEqualQuantities(a.quantity, b.quantity, rules)),
  form('text', (a, b) => a.text === b.text),
  form('set', (a, b, rules) => areEqualSets(a.items, b.items, rules)),
  form('sequence', (a, b, rules) => {
    return a.open === b.open && a.close === b.close && areEqualLists(a.items, b.items, rules);
  }),
  form('matrix', (a, b, rules) => {
    return a.rows.length === b.rows.length && a.rows.every((row, i) => areEqualLists(row, b.rows[i] ?? [], rules));
  }),
  form('equation', areEqualEquations),
  form('inequality', areEqualInequalities),
];

/** A calculation that is too large proves nothing. */
function orFalse(run: () => boolean): boolean {
  try {
    return run();
  } catch (error) {
    if (error instanceof algebra.TooLarge || error instanceof RangeError) return false;
    throw error;
  }
}

/** x = 5 is 5 where the other answer is no equation. */
function withoutNames(answer: Answer, other: Answer): Answer {
  if (answer.type !== 'equation' || other.type === 'equation') return answer;
  if (isName(answer.left)) return readAnswer(answer.right);
  return isName(answer.right) ? readAnswer(answer.left) : answer;
}

function areEqualLists(a: readonly Answer[], b: readonly Answer[], rules: Comparison): boolean {
  return a.length === b.length && a.every((item, i) => areEqualAnswers(item, at(b, i), rules));
}

/** Each element is in the other set, however often. */
function areEqualSets(a: readonly Answer[], b: readonly Answer[], rules: Comparison): boolean {
  const isIn = (item: Answer, items: readonly Answer[], swap: boolean) =>
    items.some((other) => (swap ? areEqualAnswers(other, item, rules) : areEqualAnswers(item, other, rules)));
  return a.every((item) => isIn(item, b, false)) && b.every((item) => isIn(item, a, true));
}

/**
 * The same solutions: one side minus the other is the same up to a factor. Where the ground truth is solved (x = 2),
 * the answer must be too (not 2x = 4, which may be the question).
 */
function areEqualEquations(a: Of<'equation'>, b: Of<'equation'>, rules: Comparison): boolean {
  if (a.left === b.left && isName(a.left)) return areEqualAnswers(readAnswer(a.right), readAnswer(b.right), rules);
  const solution = sideOf(b.right);
  if (isName(b.left) && (solution === undefined || !algebra.hasVariables(solution))) return false;
  const [x, y] = [differenceOf(a), differenceOf(b)];
  return x !== undefined && y !== undefined && algebra.ratio(x, y) !== undefined;
}

function differenceOf({ left, right }: Of<'equation'>): Expression | undefined {
  const [a, b] = [sideOf(left), sideOf(right)];
  return a === undefined || b === undefined ? undefined : algebra.add(a, algebra.negate(b));
}

function areEqualInequalities(a: Of<'inequality'>, b: Of<'inequality'>, rules: Comparison): boolean {
  if (a.signs.join() !== b.signs.join()) return false;
  if (a.parts.every((part, i) => areEqualValues(part, at(b.parts, i), rules.tolerance))) return true;
  const isSolved = b.parts.filter((part) => algebra.hasVariables(part)).length < 2;
  if (a.parts.length !== 2 || isSolved) return false;
  const [x, y] = [a, b].map(({ parts }) => algebra.add(at(parts, 1), algebra.negate(at(parts, 0))));
  const factor = x === undefined || y === undefined ? undefined : algebra.ratio(x, y);
  return factor !== undefined && factor.n > 0n;
}

/**
 * A set of one is its element, an inequality of a variable is an interval, and a matrix of one row or column is a
 * vector.
 */
function inOtherForms(a: Answer, b: Answer, rules: Comparison): boolean {
  // An inequality's numbers are taken as results, as the answer or as what is asked of it.
  const [x, y] = [simplerForm(a, b, true), simplerForm(b, a, false)];
  return (x !== a || y !== b) && areEqualAnswers(x, y, rules);
}

function simplerForm(answer: Answer, other: Answer, isResult: boolean): Answer {
  if (answer.type === 'set' && answer.items.length === 1) return at(answer.items, 0);
  if (other.type !== 'sequence') return answer;
  if (answer.type === 'inequality') return intervalOf(answer, isResult) ?? answer;
  return answer.type === 'matrix' ? (vectorOf(answer) ?? answer) : answer;
}

function vectorOf({ rows }: Of<'matrix'>): Answer | undefined {
  const items = rows.length === 1 ? rows[0] : rows.every((row) => row.length === 1) ? rows.flat() : undefined;
  return items === undefined ? undefined : { type: 'sequence', open: '(', close: ')', items };
}

/** x < 3 is (−∞, 3), and 1 ≤ x < 3 is [1, 3). */
function intervalOf({ parts, signs }: Of<'inequality'>, isResult: boolean): Answer | undefined {
  const variable = parts.findIndex((part) => algebra.hasVariables(part));
  const isAlone = parts.filter((part) => algebra.hasVariables(part)).length === 1;
  if (!isAlone || !algebra.isVariable(at(parts, variable))) return undefined;
  const [low, high] = [parts.slice(0, variable), parts.slice(variable + 1)];
  if (low.length > 1 || high.length > 1) return undefined;
  const infinity = algebra.atom('inf');
  const item = (value: Expression): Answer => {
    return { type: 'quantity', quantity: { value, isPercent: false, unit: '', isResult } };
  };
  return {
    type: 'sequence',
    open: low.length === 1 && signs[0] === '\\le' ? '[' : '(',
    close: high.length === 1 && signs.at(-1) === '\\le' ? ']' : ')',
    items: [item(low[0] ?? algebra.negate(infinity)), item(high[0] ?? infinity)],
  };
}
