/**
 * Reads a formula, in LaTeX or plain, as an exact expression.
 *
 *   sum      = product (("+" | "-") product)*
 *   product  = signed (("*" | "/")? signed)*       products without a sign bind like those with one: 1/2x is x/2
 *   signed   = ("+" | "-")* power
 *   power    = primary "!"* ("^" exponent)?        a number without braces is a whole exponent: x^10
 *   primary  = number | name | \frac{}{} | \sqrt[]{} | function | (sum) | {sum} | |sum|
 *
 * An integer before a fraction is a mixed number: 7\frac{3}{4} and 7 3/4 are 31/4. Functions other than roots, absolute
 * values and factorials of numbers, and binomials stay as they are: sin(0) is not 0.
 */
import * as algebra from './algebra.ts';
import type { Expression } from './algebra.ts';
import * as q from './fraction.ts';
import { Unreadable, tokensOf, type Token } from './tokens.ts';

const MOST_TOKENS = 300;
const LARGEST_FACTORIAL = 500n;
const DEEPEST = 40;

/** Functions with one argument, which may stand without parentheses. */
const FUNCTIONS: readonly string[] = [
  ...[
    'arcsin',
    'arccos',
    'arctan',
    'sinh',
    'cosh',
    'tanh',
    'sin',
    'cos',
    'tan',
    'cot',
    'sec',
    'csc',
    'log',
    'ln',
    'exp',
  ],
  ...['floor', 'ceil', 'gcd', 'max', 'min', 'det', 'deg', 'Re', 'Im'],
];

/** Commands whose argument is a part of the name. */
const ACCENTS = ['overline', 'underline', 'vec', 'hat', 'widehat', 'bar', 'dot', 'tilde', 'mathbb', 'mathcal'];

/** @throws Unreadable, TooLarge, and RangeError for a division by 0. */
export function readFormula(text: string): Expression {
  const tokens = tokensOf(text);
  if (tokens.length === 0 || tokens.length > MOST_TOKENS) throw new Unreadable(`${tokens.length} words`);
  const reader = new Reader(tokens);
  const value = reader.sum();
  reader.end();
  return value;
}

class Reader {
  readonly #tokens: Token[];
  #at = 0;
  #depth = 0;
  /** True between | and |. */
  #inBars = false;

  constructor(tokens: readonly Token[]) {
    this.#tokens = [...tokens];
  }

  end(): void {
    if (this.#at < this.#tokens.length) throw new Unreadable(`a rest from word ${this.#at}`);
  }

  sum(): Expression {
    let value = this.#product();
    for (let sign = this.#sign(); sign !== undefined; sign = this.#sign()) {
      const next = this.#product();
      value = algebra.add(value, sign === 1 ? next : algebra.negate(next));
    }
    return value;
  }

  #sign(): 1 | -1 | undefined {
    if (this.#takes('mark', '+')) return 1;
    if (this.#takes('mark', '-')) return -1;
    return undefined;
  }

  #product(): Expression {
    let value = this.#signed();
    for (;;) {
      if (this.#takes('mark', '*')) value = algebra.multiply(value, this.#signed());
      else if (this.#takes('mark', '/')) value = algebra.divide(value, this.#signed());
      else if (this.#startsFactor()) value = algebra.multiply(value, this.#power());
      else return value;
    }
  }

  /** Can the next word be a factor without a sign before it? Two numbers side by side are no product. */
  #startsFactor(): boolean {
    const next = this.#tokens[this.#at];
    const before = this.#tokens[this.#at - 1];
    if (next === undefined || (next.type === 'number' && before?.type === 'number')) return false;
    if (next.type !== 'mark') return true;
    return '([{'.includes(next.text) || (next.text === '|' && !this.#inBars);
  }

  #signed(): Expression {
    const sign = this.#sign();
    if (sign === undefined) return this.#power();
    this.#enter();
    const value = this.#signed();
    this.#depth -= 1;
    return sign === 1 ? value : algebra.negate(value);
  }

  #power(): Expression {
    let base = this.#mixedNumber() ?? this.#primary();
    while (this.#takes('mark', '!')) base = factorial(base);
    return this.#takes('mark', '^') ? algebra.power(base, this.#exponent()) : base;
  }

  #exponent(): Expression {
    this.#enter();
    const sign = this.#sign();
    const value = sign === undefined ? this.#power() : this.#exponent();
    this.#depth -= 1;
    return sign === -1 ? algebra.negate(value) : value;
  }

  /** `7 \frac{3}{4}` or `7 3/4`, of integers only. */
  #mixedNumber(): Expression | undefined {
    const [whole, next, slash, bottom] = this.#tokens.slice(this.#at, this.#at + 4);
    if (!isInteger(whole)) return undefined;
    const start = this.#at;
    if (isInteger(next) && slash?.text === '/' && isInteger(bottom)) {
      this.#at += 4;
      return algebra.number(q.add(q.fromDecimal(whole.text), q.fraction(BigInt(next.text), BigInt(bottom.text))));
    }
    if (next?.type !== 'name' || next.text !== 'frac') return undefined;
    this.#at += 1;
    const part = algebra.rational(this.#primary());
    if (part !== undefined && part.d > part.n && part.n > 0n)
      return algebra.number(q.add(q.fromDecimal(whole.text), part));
    this.#at = start;
    return undefined;
  }

  #primary(): Expression {
    this.#enter();
    const value = this.#open();
    this.#depth -= 1;
    return value;
  }

  #open(): Expression {
    const token = this.#tokens[this.#at];
    this.#at += 1;
    if (token === undefined) throw new Unreadable('nothing at the end');
    if (token.type === 'number') return algebra.number(q.fromDecimal(token.text));
    if (token.type === 'name') return this.#name(token.text);
    if (token.text === '(') return this.#until(')');
    if (token.text === '[') return this.#until(']');
    if (token.text === '{') return this.#until('}');
    if (token.text === '|' && !this.#inBars) return this.#bars();
    throw new Unreadable(`${token.text} at word ${this.#at}`);
  }

  #until(close: string): Expression {
    const value = this.sum();
    if (!this.#takes('mark', close)) throw new Unreadable(`no ${close}`);
    return value;
  }

  /** Bars do not nest, since both ends look the same. */
  #bars(): Expression {
    this.#inBars = true;
    const value = absolute(this.#until('|'));
    this.#inBars = false;
    return value;
  }

  #name(name: string): Expression {
    if (name === 'frac') return this.#fraction();
    if (name === 'sqrt') return this.#root();
    if (name === 'binom') return binomial(this.#argument(), this.#argument());
    if (name === 'abs') return absolute(this.#argument());
    if (ACCENTS.includes(name)) return call(name, this.#argument());
    if (FUNCTIONS.includes(name)) return this.#function(name);
    return algebra.atom(`${name}${this.#index()}`);
  }

  #fraction(): Expression {
    const top = this.#argument();
    return algebra.divide(top, this.#argument());
  }

  #root(): Expression {
    const degree = this.#takes('mark', '[') ? this.#until(']') : algebra.number(q.fraction(2n));
    const exponent = algebra.divide(algebra.number(q.ONE), degree);
    return algebra.power(this.#argument(), exponent);
  }

  /** `\sin^2 x`, `\log_2 8`, `\sin(x)`. */
  #function(name: string): Expression {
    const index = this.#index();
    const exponent = this.#takes('mark', '^') ? this.#exponent() : undefined;
    const value = this.#functionArgument();
    const called = name === 'exp' ? algebra.power(algebra.atom('e'), value) : call(`${name}${index}`, value);
    return exponent === undefined ? called : algebra.power(called, exponent);
  }

  /** Reads the argument of a function: in parentheses, or the following product without a sign: \sin 2x. */
  #functionArgument(): Expression {
    const next = this.#tokens[this.#at];
    if (next?.type === 'mark' && next.text === '(') return this.#primary();
    let value = this.#power();
    while (this.#startsFactor() && !FUNCTIONS.includes(this.#tokens[this.#at]?.text ?? ''))
      value = algebra.multiply(value, this.#power());
    return value;
  }

  /** What follows "_", as a part of the name. */
  #index(): string {
    if (!this.#takes('mark', '_')) return '';
    const token = this.#tokens[this.#at];
    if (token?.type === 'mark' && token.text === '{') return `_${algebra.canonical(this.#primary())}`;
    if (token === undefined || token.type === 'mark') throw new Unreadable('nothing after _');
    this.#at += 1;
    return `_${token.type === 'number' ? algebra.canonical(algebra.number(q.fromDecimal(token.text))) : `1*${token.text}^1`}`;
  }

  /** Reads an argument in braces, or a single digit or name: \frac12 is 1/2. */
  #argument(): Expression {
    const token = this.#tokens[this.#at];
    if (token?.type !== 'number' || token.text.length === 1) return this.#primary();
    const [digit = '', ...rest] = token.text;
    if (!/^\d+$/.test(token.text)) throw new Unreadable('a decimal without braces');
    this.#tokens[this.#at] = { type: 'number', text: rest.join('') };
    return algebra.number(q.fromDecimal(digit));
  }

  #takes(type: Token['type'], text: string): boolean {
    const token = this.#tokens[this.#at];
    if (token?.type !== type || token.text !== text) return false;
    this.#at += 1;
    return true;
  }

  #enter(): void {
    this.#depth += 1;
    if (this.#depth > DEEPEST) throw new algebra.TooLarge();
  }
}

function isInteger(token: Token | undefined): token is Token & { type: 'number' } {
  return token?.type === 'number' && /^\d+$/.test(token.text);
}

function call(name: string, argument: Expression): Expression {
  return algebra.atom(`${name}(${algebra.canonical(argument)})`);
}

function absolute(value: Expression): Expression {
  const known = algebra.rational(value);
  if (known !== undefined) return known.n < 0n ? algebra.negate(value) : value;
  // |x − 1| and |1 − x| have one name.
  const names = [value, algebra.negate(value)].map(algebra.canonical).sort();
  return algebra.atom(`abs(${names[0]})`);
}

function factorial(value: Expression): Expression {
  const known = algebra.rational(value);
  if (known === undefined || known.d !== 1n || known.n < 0n) return call('factorial', value);
  if (known.n > LARGEST_FACTORIAL) throw new algebra.TooLarge();
  let product = 1n;
  for (let i = 2n; i <= known.n; i++) product *= i;
  return algebra.number(q.fraction(product));
}

function binomial(n: Expression, k: Expression): Expression {
  const [top, bottom] = [algebra.rational(n), algebra.rational(k)];
  const isKnown =
    top?.d === 1n && bottom?.d === 1n && bottom.n >= 0n && top.n >= bottom.n && top.n <= LARGEST_FACTORIAL;
  if (!isKnown) return algebra.atom(`binom(${algebra.canonical(n)},${algebra.canonical(k)})`);
  let value = 1n;
  for (let i = 1n; i <= bottom.n; i++) value = (value * (top.n - bottom.n + i)) / i;
  return algebra.number(q.fraction(value));
}
