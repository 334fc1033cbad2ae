/**
 * Arithmetic of the shell: `$((1024 * 2 + n))`. Integers, names, `+ - * / % **`, comparisons, `&& || !`, brackets and
 * `a ? b : c`. undefined: not understood, or a name without a number.
 */
import { LIMITS } from './limits.ts';

/** `valueOf`: the text of a variable; undefined when it is not known. */
export function evaluateArithmetic(source: string, valueOf: (name: string) => string | undefined): number | undefined {
  if (source.length > 10_000) return undefined;
  const tokens = source.match(/\s+|\$\{[\w#]+\}|\$[\w#]+|\w+|\*\*|[<>=!]=|&&|\|\||[-+*/%()<>!?:]|[^\s]/g) ?? [];
  const reader = new Reader(
    tokens.map((token) => token.trim().replace(/^\$\{?(\w+|#)\}?$/, '$$$1')).filter((token) => token !== ''),
    valueOf,
  );
  const value = reader.ternary();
  return reader.isDone && value !== undefined && Number.isSafeInteger(value) ? value : undefined;
}

/** The variables that the expression sets: `n++`, `n += 2`. */
export const setByArithmetic = (source: string): string[] =>
  [
    ...source
      .slice(0, 10_000)
      .matchAll(/([A-Za-z_]\w*)\s*(?:\+\+|--|(?:[-+*/%&|^]|<<|>>)?=(?!=))|(?:\+\+|--)\s*([A-Za-z_]\w*)/g),
  ].map(([, before, after]) => before ?? after ?? '');

/** Binary operators, weakest first. */
const LEVELS: readonly Readonly<Record<string, (a: number, b: number) => number>>[] = [
  { '||': (a, b) => Number(a !== 0 || b !== 0) },
  { '&&': (a, b) => Number(a !== 0 && b !== 0) },
  { '==': (a, b) => Number(a === b), '!=': (a, b) => Number(a !== b) },
  {
    '<': (a, b) => Number(a < b),
    '>': (a, b) => Number(a > b),
    '<=': (a, b) => Number(a <= b),
    '>=': (a, b) => Number(a >= b),
  },
  { '+': (a, b) => a + b, '-': (a, b) => a - b },
  {
    '*': (a, b) => a * b,
    '/': (a, b) => (b === 0 ? Number.NaN : Math.trunc(a / b)),
    '%': (a, b) => (b === 0 ? Number.NaN : a % b),
  },
  { '**': (a, b) => (b < 0 ? Number.NaN : a ** b) },
];

class Reader {
  readonly #tokens: readonly string[];
  readonly #valueOf: (name: string) => string | undefined;
  #at = 0;
  #depth = 0;

  constructor(tokens: readonly string[], valueOf: (name: string) => string | undefined) {
    this.#tokens = tokens;
    this.#valueOf = valueOf;
  }

  get isDone(): boolean {
    return this.#at === this.#tokens.length;
  }

  ternary(): number | undefined {
    const condition = this.#binary(0);
    if (!this.#takes('?')) return condition;
    const then = this.ternary();
    if (!this.#takes(':')) return undefined;
    const otherwise = this.ternary();
    return condition === undefined ? undefined : condition === 0 ? otherwise : then;
  }

  #binary(level: number): number | undefined {
    const operators = LEVELS[level];
    if (operators === undefined) return this.#unary();
    let left = this.#binary(level + 1);
    for (;;) {
      const token = this.#tokens[this.#at] ?? '';
      const operator = Object.hasOwn(operators, token) ? operators[token] : undefined;
      if (operator === undefined || left === undefined) return left;
      this.#at += 1;
      const right = this.#binary(level + 1);
      left = right === undefined ? undefined : operator(left, right);
    }
  }

  #unary(): number | undefined {
    this.#depth += 1;
    const value = this.#depth > LIMITS.depth ? undefined : this.#signed();
    this.#depth -= 1;
    return value;
  }

  #signed(): number | undefined {
    if (this.#takes('+')) return this.#unary();
    if (this.#takes('-')) return negative(this.#unary());
    if (this.#takes('!')) {
      const value = this.#unary();
      return value === undefined ? undefined : Number(value === 0);
    }
    if (this.#takes('(')) {
      const value = this.ternary();
      return this.#takes(')') ? value : undefined;
    }
    const token = this.#tokens[this.#at] ?? '';
    this.#at += 1;
    return /^[A-Za-z_$]/.test(token) ? integer(this.#valueOf(token.replace('$', '')) ?? '') : integer(token);
  }

  #takes(token: string): boolean {
    if (this.#tokens[this.#at] !== token) return false;
    this.#at += 1;
    return true;
  }
}

const negative = (value: number | undefined): number | undefined => (value === undefined ? undefined : -value);

/** A decimal integer. `010` is octal in a shell, so it is not read. */
export function integer(text: string): number | undefined {
  const trimmed = text.trim();
  return /^-?(?:0|[1-9]\d{0,15})$/.test(trimmed) ? Number(trimmed) : undefined;
}
