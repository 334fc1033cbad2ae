/**
 * MATH (verl: `reward_score/math_reward.py`): 1 when the content of the last box and the ground truth are the same text
 * after the normalisation of Hendrycks et al. 2021 (arXiv 2103.03874), else 0.
 *
 * Odd, and kept because published results rest on it:
 * - Any `\boxed ` with a space wins over boxes with braces, and reaches to the next `$` or the end.
 * - `\fbox{…}` is found when there is no `\boxed`, but scores 0.
 * - `\left`, `\right`, `tfrac` and `dfrac` are replaced inside words too: `\leftover` becomes `over`.
 * - Only `0.5` becomes `\frac{1}{2}`, so 0.50 is another answer.
 * - Where the normalisation of either text fails (`\sqrt` or `\frac` at the end, two `\text{ `), the raw texts are
 *   compared.
 */
import { at } from '../core/at.ts';
import { groundTruthText } from './ground-truth.ts';
import type { Scorer } from './types.ts';

const BOXED = String.raw`\boxed{`;
/** The form without braces. */
const BOXED_SPACE = '\\boxed ';

/** Returns a score and `acc`, which says whether the answer is right. */
export const mathReward: Scorer = (input) => {
  const truth = groundTruthText('math_reward', input);
  const answer = boxedAnswer(input.solutionStr);
  const acc = answer !== undefined && areEquivalent(answer, truth);
  return { score: Number(acc), acc };
};

/**
 * What stands in the last box; undefined when there is none that counts. verl prepares ground truths of MATH with it,
 * too.
 */
export function boxedAnswer(text: string): string | undefined {
  const box = lastBox(text);
  return box === undefined ? undefined : contentOf(box);
}

/** The last box with its command; undefined when there is none or its braces are not balanced. */
export function lastBox(text: string): string | undefined {
  const spaced = text.lastIndexOf(BOXED_SPACE);
  if (spaced !== -1) return text.slice(spaced).split('$', 1)[0];
  const boxed = text.lastIndexOf('\\boxed');
  const start = boxed === -1 ? text.lastIndexOf('\\fbox') : boxed;
  return start === -1 ? undefined : upToClosingBrace(text, start);
}

/** `text` from `start` to the brace that closes the first one opened there. */
export function upToClosingBrace(text: string, start: number): string | undefined {
  let open = 0;
  for (let i = start; i < text.length; i++) {
    if (text[i] === '{') open += 1;
    else if (text[i] === '}') {
      open -= 1;
      if (open === 0) return text.slice(start, i + 1);
    }
  }
  return undefined;
}

function contentOf(box: string): string | undefined {
  if (box.startsWith(BOXED_SPACE)) return box.slice(BOXED_SPACE.length);
  return box.startsWith(BOXED) ? box.slice(BOXED.length, -1) : undefined;
}

function areEquivalent(answer: string, truth: string): boolean {
  const [a, b] = [normalizeMath(answer), normalizeMath(truth)];
  return a === undefined || b === undefined ? answer === truth : a === b;
}

const REPLACED: readonly (readonly [string, string])[] = [
  ['\n', ''],
  ['\\!', ''],
  ['\\\\', '\\'],
  ['tfrac', 'frac'],
  ['dfrac', 'frac'],
  ['\\left', ''],
  ['\\right', ''],
  ['^{\\circ}', ''],
  ['^\\circ', ''],
  ['\\$', ''],
];

/** Applied after units were removed. */
const REPLACED_LATER: readonly (readonly [string, string])[] = [
  ['\\\\%', ''],
  ['\\%', ''],
  [' .', ' 0.'],
  ['{.', '{0.'],
];

/** verl's `strip_string`. Undefined where the reference raises an error. */
export function normalizeMath(answer: string): string | undefined {
  const number = withoutUnits(replaceAll(answer, REPLACED));
  if (number === undefined) return undefined;
  let text = replaceAll(number, REPLACED_LATER);
  if (text === '') return text;
  if (text.startsWith('.')) text = `0${text}`;
  const roots = bracedRoots(withoutName(text));
  if (roots === undefined) return undefined;
  const fractions = bracedFractions(roots.replaceAll(' ', ''));
  if (fractions === undefined) return undefined;
  return fractions === '0.5' ? String.raw`\frac{1}{2}` : slashFraction(fractions);
}

function replaceAll(text: string, replacements: readonly (readonly [string, string])[]): string {
  let replaced = text;
  for (const [from, to] of replacements) replaced = replaced.replaceAll(from, to);
  return replaced;
}

/** Cuts `\text{ cm}` and what follows it. */
function withoutUnits(text: string): string | undefined {
  const parts = text.split('\\text{ ');
  return parts.length > 2 ? undefined : parts[0];
}

/** Removes `x=` or `xy=` in front. */
function withoutName(text: string): string {
  const [name = '', value, ...more] = text.split('=');
  return value !== undefined && more.length === 0 && [...name].length <= 2 ? value : text;
}

/** `\sqrt2` becomes `\sqrt{2}`. */
function bracedRoots(text: string): string | undefined {
  const [before = '', ...arguments_] = text.split('\\sqrt');
  let result = before;
  for (const argument of arguments_) {
    if (argument === '') return undefined;
    const [first = '', ...rest] = argument;
    result += first === '{' ? `\\sqrt${argument}` : `\\sqrt{${first}}${rest.join('')}`;
  }
  return result;
}

/** `\frac12` and `\frac1{2}` become `\frac{1}{2}`. One `\frac` with a single character after it: the text as it was. */
function bracedFractions(text: string): string | undefined {
  const [before = '', ...arguments_] = text.split('\\frac');
  let result = before;
  for (const argument of arguments_) {
    if (argument === '') return undefined;
    const characters = [...argument];
    const [a, b] = characters;
    if (a === '{') result += `\\frac${argument}`;
    else if (b === undefined) return text;
    else result += `\\frac{${at(characters, 0)}}${b === '{' ? b : `{${b}}`}${characters.slice(2).join('')}`;
  }
  return result;
}

/** `3/4` becomes `\frac{3}{4}` when both are integers in their usual form: no plus, no leading zeros. */
function slashFraction(text: string): string {
  const found = /^(0|-?[1-9][0-9]*)\/(0|-?[1-9][0-9]*)$/.exec(text);
  return found === null ? text : `\\frac{${found[1]}}{${found[2]}}`;
}
