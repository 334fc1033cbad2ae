/**
 * DAPO's mathematics (verl: `reward_score/math_dapo.py`; Yu et al. 2025, arXiv 2503.14476; also AIME): +1 for a right
 * answer, −1 for a wrong one.
 *
 * Only the last 300 code points count. The answer is the line after the last `Answer:` in them, without regard to case;
 * it and the ground truth are normalised as in Minerva (Lewkowycz et al. 2022, arXiv 2206.14858) and compared as texts.
 * Without such a line, the last `\boxed{…}` in the last 100 code points is compared with the ground truth as it stands.
 *
 * Odd, and kept: `a ` and `an ` are removed inside words ("banana 3" becomes "banan3"), units are removed as parts of
 * words ("squared" becomes "d"), all before the last "=" is dropped, and a point at the end stays. `Anſwer:` counts.
 */
import { InvalidInputError } from '../core/errors.ts';
import { groundTruthText } from './ground-truth.ts';
import { upToClosingBrace } from './math-reward.ts';
import { isDigits, lastCodePoints, SPACE, strip } from './python-text.ts';
import type { Scorer, ScorerSettings } from './types.ts';

const TAIL = 300;
const BOX_TAIL = 100;
const BOXED = String.raw`\boxed{`;
const NO_ANSWER = '[INVALID]';
const answerLine = new RegExp(`Answer[${SPACE}]*:[${SPACE}]*([^\\n]+)`, 'giu');

/**
 * Settings: `strict_box_verify` (false): only the box counts; `pause_tokens_index`: four positions of the tail, of
 * which the last one says where the box is looked for. Also returns `acc` and `pred`, the answer that was found.
 */
export const mathDapo: Scorer = (input, settings) => {
  const truth = groundTruthText('math_dapo', input);
  const tail = lastCodePoints(input.solutionStr, TAIL);
  const { acc, pred } = verify(tail, truth, settings);
  return { score: acc ? 1 : -1, acc, pred: pred ?? null };
};

interface Verdict {
  readonly acc: boolean;
  readonly pred: string | undefined;
}

function verify(tail: string, truth: string, settings: ScorerSettings): Verdict {
  const onlyBox = Boolean(settings['strict_box_verify'] ?? false);
  const line = onlyBox ? undefined : [...tail.matchAll(answerLine)].at(-1)?.[1];
  const pred = normalizeFinalAnswer(line ?? NO_ANSWER);
  // A line that itself says [INVALID] counts as none.
  if (!onlyBox && pred !== NO_ANSWER) return { acc: pred === normalizeFinalAnswer(truth), pred };
  const box = lastBoxContent(boxTail(tail, settings['pause_tokens_index'] ?? undefined));
  if (box !== undefined || onlyBox) return { acc: box === truth, pred: box };
  return { acc: pred === normalizeFinalAnswer(truth), pred };
}

/** The text in which the box is looked for: Python's `text[start:]`, with a negative start counted from the end. */
function boxTail(tail: string, pauses: unknown): string {
  if (pauses === undefined) return lastCodePoints(tail, BOX_TAIL);
  const last: unknown = Array.isArray(pauses) && pauses.length === 4 ? pauses[3] : undefined;
  if (typeof last !== 'number' || !Number.isInteger(last)) {
    throw new InvalidInputError(
      `math_dapo: pause_tokens_index must be a list of 4 integers, got ${JSON.stringify(pauses)}`,
      { hint: 'change reward.reward_kwargs.pause_tokens_index' },
    );
  }
  return [...tail].slice(last - BOX_TAIL).join('');
}

function lastBoxContent(text: string): string | undefined {
  const start = text.lastIndexOf(BOXED);
  return start === -1 ? undefined : upToClosingBrace(text, start)?.slice(BOXED.length, -1);
}

const SUBSTITUTIONS: readonly (readonly [string, string])[] = [
  ['an ', ''],
  ['a ', ''],
  ['.$', '$'],
  ['\\$', ''],
  ['\\ ', ''],
  [' ', ''],
  ['mbox', 'text'],
  [',\\text{and}', ','],
  ['\\text{and}', ','],
  ['\\text{m}', '\\text{}'],
];

/** Units and decoration, removed one after the other wherever they stand. */
const REMOVED: readonly string[] = [
  ...['square', 'ways', 'integers', 'dollars', 'mph', 'inches', 'hours', 'km', 'units', '\\ldots', 'sue', 'points'],
  ...['feet', 'minutes', 'digits', 'cents', 'degrees', 'cm', 'gm', 'pounds', 'meters', 'meals', 'edges', 'students'],
  ...['childrentickets', 'multiples', '\\text{s}', '\\text{.}', '\\text{\ns}', '\\text{}^2', '\\text{}^3'],
  ...['\\text{\n}', '\\text{}', '\\mathrm{th}', '^\\circ', '^{\\circ}', '\\;', ',\\!', '{,}', '"', '\\dots'],
];

/** Later steps see the result of earlier ones. `\text{x}` and its like become their content. */
const PATTERNS: readonly (readonly [RegExp, (match: string, ...groups: string[]) => string])[] = [
  [/[^\n]*?\$([^\n]*?)\$[^\n]*/gu, (_, content) => `$${content}$`],
  [/\\text\{([^\n]*?)\}/gu, (_, content) => content ?? ''],
  [/\\textbf\{([^\n]*?)\}/gu, (_, content) => content ?? ''],
  [/\\overline\{([^\n]*?)\}/gu, (_, content) => content ?? ''],
  [/\\boxed\{([^\n]*)\}/gu, (_, content) => content ?? ''],
  [/frac([^{])([^\n])/gu, (_, a, b) => `frac{${a}}{${b}}`],
  [/sqrt([^{])/gu, (_, a) => `sqrt{${a}}`],
];

/** verl's `normalize_final_answer`. */
export function normalizeFinalAnswer(answer: string): string {
  let text = answer.slice(answer.lastIndexOf('=') + 1);
  for (const [from, to] of SUBSTITUTIONS) text = text.replaceAll(from, to);
  for (const removed of REMOVED) text = text.replaceAll(removed, '');
  for (const [pattern, replacement] of PATTERNS) text = text.replace(pattern, replacement);
  text = text.replaceAll('$', '');
  const withoutCommas = text.replaceAll(',', '');
  return strip(isDigits(withoutCommas) ? withoutCommas : text);
}
