/** The words of a formula. */

export type Token =
  | { readonly type: 'number'; readonly text: string }
  /** A variable or the name of a function, from LaTeX or plain: `x`, `pi`, `frac`, `sin`. */
  | { readonly type: 'name'; readonly text: string }
  /** One of + - * / ^ _ ! ( ) [ ] { } | */
  | { readonly type: 'mark'; readonly text: string };

/** The formula cannot be read. */
export class Unreadable extends Error {}

/** Plain words that mean the same as LaTeX commands. Other words of three or more letters are no formula. */
const WORDS: readonly string[] = [
  ...['arcsin', 'arccos', 'arctan', 'sinh', 'cosh', 'tanh', 'sqrt', 'sin', 'cos', 'tan', 'cot', 'sec', 'csc'],
  ...['log', 'ln', 'exp', 'pi', 'inf', 'infinity', 'theta', 'alpha', 'beta', 'abs'],
];

/** English words of two letters, which are no products. */
const SHORT_WORDS = 'am an as at be by do go he if in is it me my no of on or pm so to up us we'.split(' ');

/** Commands of relations, texts and other things that have no value. */
const NO_VALUES: readonly string[] = [
  ...['text', 'begin', 'end', 'le', 'ge', 'ne', 'lt', 'gt', 'in', 'notin', 'cup', 'cap', 'setminus', 'to', 'implies'],
  ...['rightarrow', 'Rightarrow', 'iff', 'approx', 'sim', 'equiv', 'dots', 'ldots', 'cdots', 'emptyset', 'langle'],
  ...['rangle', 'boxed', 'forall', 'exists', 'land', 'lor', 'pm', 'mp'],
];

/** Commands with another name or mark. */
const SAME: Readonly<Record<string, string>> = {
  cdot: '*',
  times: '*',
  ast: '*',
  div: '/',
  infty: 'inf',
  infinity: 'inf',
  lfloor: 'floor(',
  rfloor: ')',
  lceil: 'ceil(',
  rceil: ')',
};

const pattern =
  /\s*(?:(?<number>\d+(?:\.\d+)?|\.\d+)|\\(?<command>[a-zA-Z]+)|(?<word>[a-zA-Z]+)|(?<greek>[α-ωΑ-Ω])|(?<mark>\*\*|[-+*/^_!()[\]{}|]))/uy;

/** @throws Unreadable for a character or a word that no formula has. */
export function tokensOf(formula: string): Token[] {
  const tokens: Token[] = [];
  const text = formula.trimEnd();
  pattern.lastIndex = 0;
  for (let at = 0; at < text.length; at = pattern.lastIndex) {
    pattern.lastIndex = at;
    const found = pattern.exec(text)?.groups;
    if (found === undefined) throw new Unreadable(`no formula has ${JSON.stringify(text.slice(at, at + 10))}`);
    const { number, command, word, greek, mark } = found;
    if (number !== undefined) tokens.push({ type: 'number', text: number });
    else if (command !== undefined) tokens.push(...commandTokens(command));
    else if (word !== undefined) tokens.push(...wordTokens(word));
    else if (greek !== undefined) tokens.push({ type: 'name', text: greek });
    else if (mark !== undefined) tokens.push({ type: 'mark', text: mark === '**' ? '^' : mark });
  }
  return tokens;
}

function commandTokens(command: string): Token[] {
  if (NO_VALUES.includes(command)) throw new Unreadable(`\\${command} has no value`);
  const same = SAME[command] ?? command;
  if (same.length > 1 && same.endsWith('('))
    return [
      { type: 'name', text: same.slice(0, -1) },
      { type: 'mark', text: '(' },
    ];
  return [/^[*/)]$/.test(same) ? { type: 'mark', text: same } : { type: 'name', text: same }];
}

/** `xy` is a product of variables; `sqrt` and `sin` are functions. */
function wordTokens(word: string): Token[] {
  const lower = word.toLowerCase();
  if (WORDS.includes(lower)) return [{ type: 'name', text: SAME[lower] ?? lower }];
  if (word.length > 2 || SHORT_WORDS.includes(lower)) throw new Unreadable(`${word} is a word`);
  return [...word].map((letter) => ({ type: 'name', text: letter }));
}
