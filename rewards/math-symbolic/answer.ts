/** The forms of an answer, and how its text is read. */
import { TooLarge, type Expression } from './algebra.ts';
import { readFormula } from './formula.ts';
import { cleanLatex } from './latex.ts';
import { readQuantity, withoutThousands, withoutUnit, type Quantity } from './quantity.ts';
import { bracketed, splitAt } from './split.ts';
import { Unreadable } from './tokens.ts';

export type Answer =
  | { readonly type: 'quantity'; readonly quantity: Quantity }
  /** Items in any order: \{1, 2\}, 1 or 2, ±1, and a union of intervals. */
  | { readonly type: 'set'; readonly items: readonly Answer[] }
  /** Items in this order: a point, a vector, an interval. */
  | { readonly type: 'sequence'; readonly open: string; readonly close: string; readonly items: readonly Answer[] }
  | { readonly type: 'equation'; readonly left: string; readonly right: string }
  /** Ascending: x > 3 is 3 < x, and 1 < x ≤ 5 has three parts. */
  | { readonly type: 'inequality'; readonly parts: readonly Expression[]; readonly signs: readonly Sign[] }
  | { readonly type: 'matrix'; readonly rows: readonly (readonly Answer[])[] }
  /** Whatever else, in lower case. */
  | { readonly type: 'text'; readonly text: string };

export type Sign = '<' | '\\le';

const LONGEST = 2_000;
const DEEPEST = 6;

/** Never throws: what has no other form is a text. */
export function readAnswer(answer: string): Answer {
  return answer.length > LONGEST ? plainText(answer) : read(cleanLatex(answer), DEEPEST);
}

type Form = (text: string, depth: number) => Answer | undefined;

function read(answer: string, depth: number): Answer {
  const text = answer.trim();
  if (depth === 0) return plainText(text);
  for (const form of FORMS) {
    const found = orUndefined(() => form(text, depth - 1));
    if (found !== undefined) return found;
  }
  return plainText(text);
}

const FORMS: readonly Form[] = [union, membership, list, brackets, matrix, relation, plusMinus, quantity];

/** What cannot be read, would take too long, or divides by 0 has another form. */
function orUndefined<T>(run: () => T): T | undefined {
  try {
    return run();
  } catch (error) {
    if (error instanceof Unreadable || error instanceof TooLarge || error instanceof RangeError) return undefined;
    throw error;
  }
}

function union(text: string, depth: number): Answer | undefined {
  const { parts } = splitAt(text, (one) => one === '\\cup');
  return parts.length > 1 ? { type: 'set', items: parts.map((part) => read(part, depth)) } : undefined;
}

/** x \in S is S. */
function membership(text: string, depth: number): Answer | undefined {
  const { parts } = splitAt(text, (one) => one === '\\in');
  return parts.length === 2 && isName(parts[0] ?? '') ? read(parts[1] ?? '', depth) : undefined;
}

const conjunction =
  /\\text\s*\{\s*,?\s*(?:or|and)\s*\}|(?<![a-zA-Z\\])(?:or|and)(?![a-zA-Z])|\\(?:lor|land)(?![a-zA-Z])|;/g;

function list(text: string, depth: number): Answer | undefined {
  if (text === '\\emptyset') return { type: 'set', items: [] };
  if (withoutThousands(withoutUnit(text).rest) !== undefined) return undefined;
  const { parts } = splitAt(text.replace(conjunction, ','), (one) => one === ',');
  const items = parts.filter((part) => part.trim() !== '');
  return parts.length > 1 && items.length > 0
    ? { type: 'set', items: items.map((part) => read(part, depth)) }
    : undefined;
}

function brackets(text: string, depth: number): Answer | undefined {
  const found = bracketed(text);
  if (found === undefined) return undefined;
  const { open, inside, close } = found;
  const { parts } = splitAt(inside, (one) => one === ',');
  if (open === '\\{' && close === '\\}') return setOf(parts, depth);
  if (parts.length === 1) return undefined;
  const items = parts.map((part) => read(part, depth));
  const isVector = open === '\\langle' && close === '\\rangle';
  return { type: 'sequence', open: isVector ? '(' : open, close: isVector ? ')' : close, items };
}

function setOf(parts: readonly string[], depth: number): Answer {
  const items = parts.length === 1 && parts[0]?.trim() === '' ? [] : parts;
  return { type: 'set', items: items.map((part) => read(part, depth)) };
}

const environment = /^\\begin\s*\{([bpBvV]?matrix|array)\}\s*(?:\{[lcr|\s]*\})?([\s\S]*)\\end\s*\{\1\}$/;

function matrix(text: string, depth: number): Answer | undefined {
  const [, kind, inside = ''] = environment.exec(text) ?? [];
  // Bars around a matrix are its determinant.
  if (kind === undefined || kind.toLowerCase() === 'vmatrix') return undefined;
  const rows = inside.split(/\\\\(?:\[[^\]]*\])?/).filter((row) => row.trim() !== '');
  return { type: 'matrix', rows: rows.map((row) => row.split('&').map((item) => read(item, depth))) };
}

const RELATIONS = ['=', '<', '>', '\\le', '\\ge', '\\lt', '\\gt'];

function relation(text: string): Answer | undefined {
  const { parts, separators } = splitAt(text, (one) => RELATIONS.includes(one));
  const [left = ''] = parts;
  if (separators.length === 0) return undefined;
  // Of a chain of equations the last part is the result.
  if (separators.every((one) => one === '='))
    return { type: 'equation', left: left.trim(), right: (parts.at(-1) ?? '').trim() };
  return inequality(parts, separators);
}

const ASCENDING: Readonly<Record<string, Sign>> = { '<': '<', '\\lt': '<', '\\le': '\\le' };
const DESCENDING: Readonly<Record<string, Sign>> = { '>': '<', '\\gt': '<', '\\ge': '\\le' };

function inequality(texts: readonly string[], separators: readonly string[]): Answer | undefined {
  const parts = texts.map((part) => readQuantity(part).value);
  const [up, down] = [ASCENDING, DESCENDING].map((signs) => separators.flatMap((one) => signs[one] ?? []));
  if (up?.length === separators.length) return { type: 'inequality', parts, signs: up };
  if (down?.length !== separators.length) return undefined;
  return { type: 'inequality', parts: parts.toReversed(), signs: down.toReversed() };
}

/** ±3 is the set of 3 and −3. All signs of an answer change together. */
function plusMinus(text: string, depth: number): Answer | undefined {
  if (!twoSigns.test(text)) return undefined;
  const withSign = (plus: string, minus: string) =>
    text.replace(/\\pm(?![a-zA-Z])/g, plus).replace(/\\mp(?![a-zA-Z])/g, minus);
  return { type: 'set', items: [withSign('+', '-'), withSign('-', '+')].map((one) => read(one, depth)) };
}

const twoSigns = /\\(?:pm|mp)(?![a-zA-Z])/;

function quantity(text: string): Answer {
  return { type: 'quantity', quantity: readQuantity(text) };
}

function plainText(answer: string): Answer {
  const text = answer
    .replace(/\\text\s*\{([^{}]*)\}/g, '$1')
    .replace(/[{}$\\]/g, '')
    .replace(/\s+/g, ' ')
    .replace(/^[\s."'“”]+|(?<![\s."'“”])[\s."'“”]+$/gu, '');
  return { type: 'text', text: text.toLowerCase() };
}

/** x, \alpha, x_1, x_{max}', and so on. */
const variable = /\\?[a-zA-Z]+(?:_\{?\w+\}?)?'?/;
/** (x) behind the name of a function. */
const ofVariable = /(?:\s*\(\s*\\?[a-zA-Z]+\s*\))?/;
const words = /(?:\\text\s*\{[^{}]*\}|[a-zA-Z ])+/;
/** (x, y) */
const variables = /\(\s*[a-zA-Z](?:\s*,\s*[a-zA-Z])+\s*\)/;

const name = new RegExp(`^\\s*(?:${variable.source}${ofVariable.source}|${words.source}|${variables.source})\\s*$`);

/** A variable, a function of one, or words: what stands left of "=" when the right side is the answer. */
export function isName(text: string): boolean {
  return name.test(text);
}

/** The expression of a side of an equation; undefined when it has none. */
export function sideOf(text: string): Expression | undefined {
  return orUndefined(() => readFormula(text));
}
