/** An answer's LaTeX without its layout, so that only what it means is left. */
import { strip } from '../python-text.ts';
import { fraction } from './fraction.ts';

/** Other characters for LaTeX commands. Longer names stand before their beginnings. */
const SYMBOLS: readonly (readonly [RegExp, string])[] = [
  [/[−–—]/g, '-'],
  [/[×✕]/g, '\\times '],
  [/[·⋅∙]/g, '\\cdot '],
  [/÷/g, '/'],
  [/π/g, '\\pi '],
  [/∞/g, '\\infty '],
  [/√/g, '\\sqrt '],
  [/[°º]/g, '^{\\circ}'],
  [/≤|⩽|<=/g, '\\le '],
  [/≥|⩾|>=/g, '\\ge '],
  [/≠|!=/g, '\\ne '],
  [/±/g, '\\pm '],
  [/∪/g, '\\cup '],
  [/∩/g, '\\cap '],
  [/∈/g, '\\in '],
  [/∅/g, '\\emptyset '],
  [/½/g, '\\frac{1}{2}'],
  [/¼/g, '\\frac{1}{4}'],
  [/¾/g, '\\frac{3}{4}'],
  [/⅓/g, '\\frac{1}{3}'],
  [/⅔/g, '\\frac{2}{3}'],
];

const SUPERSCRIPTS = '⁰¹²³⁴⁵⁶⁷⁸⁹';

/** Commands of layout, and their meaning. */
const LAYOUT: readonly (readonly [RegExp, string])[] = [
  [/\\(?:left|right)\s*\./g, ''],
  [/\\(?:left|right|[bB]igg?[lr]?|displaystyle|textstyle|limits|mathstrut|hspace\{[^{}]*\})(?![a-zA-Z])/g, ''],
  [/\\(?:dfrac|tfrac|cfrac)(?![a-zA-Z])/g, '\\frac'],
  [/\\(?:leq|leqslant)(?![a-zA-Z])/g, '\\le '],
  [/\\(?:geq|geqslant)(?![a-zA-Z])/g, '\\ge '],
  [/\\neq(?![a-zA-Z])/g, '\\ne '],
  [/\\(?:lbrace)(?![a-zA-Z])/g, '\\{'],
  [/\\(?:rbrace)(?![a-zA-Z])/g, '\\}'],
  [/\\(?:lvert|rvert|vert|mid)(?![a-zA-Z])/g, '|'],
  [/\\(?:varnothing)(?![a-zA-Z])/g, '\\emptyset '],
  [/\\(?:quad|qquad)(?![a-zA-Z])/g, ' '],
  [/\\(?:mathrm|mathbf|mathit|mathsf|boldsymbol|operatorname\*?)\s*\{/g, '\\text{'],
  [/\\(?:textbf|textit|textrm|textsf|textnormal|mbox|hbox|emph)\s*\{/g, '\\text{'],
  // A variable or a function, not a word.
  [/\\text\{\s*([a-zA-Z]|sin|cos|tan|cot|sec|csc|log|ln|exp|max|min|gcd)\s*\}/g, ' $1 '],
  [/(\d)(?:\{,\}|\\,|,\\!|\\!|~)(?=\d{3}(?!\d))/g, '$1'],
  [/(?<!\\)\\[,;:! ]|~/g, ' '],
  [/\^\s*\{?\s*\\circ\s*\}?|\\degree(?![a-zA-Z])/g, '\\degree '],
];

/** The answer without dollar signs of mathematics, layout, and a point at its end. A dollar of money stays as `\$`. */
export function cleanLatex(answer: string): string {
  let text = answer.normalize('NFC').replace(/[０-９]/g, (digit) => digit.normalize('NFKC'));
  for (const [pattern, replacement] of SYMBOLS) text = text.replace(pattern, replacement);
  text = text.replace(/[⁰¹²³⁴-⁹]+/g, exponentOf).replace(/(?<!\\)\\[()[\]]|(?<!\\)\$/g, ' ');
  for (const [pattern, replacement] of LAYOUT) text = text.replace(pattern, replacement);
  text = text.replace(repeating, (_, whole: string, start: string, part: string) => fractionOf(whole, start, part));
  return unwrapped(strip(text).replace(/(?<!\\)[.。]$/, ''));
}

const repeating = /(\d*)\.(\d*)\\(?:overline|bar|dot)\s*\{(\d+)\}/g;

/** 0.1\overline{6} is 1/6: (16 − 1) / 90. */
function fractionOf(whole: string, start: string, part: string): string {
  const top = BigInt(whole + start + part) - BigInt(whole + start || '0');
  const { n, d } = fraction(top, BigInt('9'.repeat(part.length) + '0'.repeat(start.length)));
  return d === 1n ? String(n) : `\\frac{${n}}{${d}}`;
}

function exponentOf(superscripts: string): string {
  return `^{${[...superscripts].map((one) => SUPERSCRIPTS.indexOf(one)).join('')}}`;
}

/** Removes `\boxed{}`, `\text{}`, `**`, and braces around the whole answer. */
function unwrapped(text: string): string {
  const bare = strip(strip(text).replace(/^\*+|\*+$/g, ''));
  const inner = /^(?:\\(?:boxed|fbox|text)\s*)?\{/.exec(bare);
  const open = (inner?.[0].length ?? 0) - 1;
  return open >= 0 && closingBrace(bare, open) === bare.length - 1 ? unwrapped(bare.slice(open + 1, -1)) : bare;
}

/** Index of the brace that closes the one at `open`; −1 when there is none. Braces with a backslash do not count. */
function closingBrace(text: string, open: number): number {
  let depth = 0;
  for (let i = open; i < text.length; i++) {
    if (text[i] === '\\') i += 1;
    else if (text[i] === '{') depth += 1;
    else if (text[i] === '}') {
      depth -= 1;
      if (depth === 0) return i;
    }
  }
  return -1;
}
