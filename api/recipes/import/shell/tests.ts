/** `[ … ]`, `[[ … ]]` and `test …`, on texts and numbers. undefined: it depends on something that is not known. */
import { integer } from './arithmetic.ts';
import { hasHole } from './holes.ts';
import { LIMITS } from './limits.ts';

export type Truth = boolean | undefined;

export const not = (truth: Truth): Truth => (truth === undefined ? undefined : !truth);
const and = (a: Truth, b: Truth): Truth => (a === false || b === false ? false : a && b);
const or = (a: Truth, b: Truth): Truth => not(and(not(a), not(b)));

/** `words`: expanded, without the brackets. */
export function evaluateTest(words: readonly string[]): Truth {
  const reader = new Reader(words);
  const truth = reader.or();
  return reader.isDone ? truth : undefined;
}

const NUMBERS: Readonly<Record<string, (a: number, b: number) => boolean>> = {
  '-eq': (a, b) => a === b,
  '-ne': (a, b) => a !== b,
  '-lt': (a, b) => a < b,
  '-le': (a, b) => a <= b,
  '-gt': (a, b) => a > b,
  '-ge': (a, b) => a >= b,
};

class Reader {
  readonly #words: readonly string[];
  #at = 0;
  #depth = 0;

  constructor(words: readonly string[]) {
    this.#words = words;
  }

  get isDone(): boolean {
    return this.#at === this.#words.length;
  }

  or(): Truth {
    let truth = this.#and();
    while (this.#takes('||', '-o')) truth = or(truth, this.#and());
    return truth;
  }

  #and(): Truth {
    let truth = this.#one();
    while (this.#takes('&&', '-a')) truth = and(truth, this.#one());
    return truth;
  }

  #one(): Truth {
    this.#depth += 1;
    if (this.#depth > LIMITS.depth) return undefined;
    const [first, operator, right] = this.#words.slice(this.#at, this.#at + 3);
    if (right !== undefined && isBinary(operator)) {
      this.#at += 3;
      return compare(first ?? '', operator ?? '', right);
    }
    if (this.#takes('!')) return not(this.#one());
    if (this.#takes('(')) {
      const truth = this.or();
      return this.#takes(')') ? truth : undefined;
    }
    if (operator !== undefined && /^-[a-zA-Z]$/.test(first ?? '')) {
      this.#at += 2;
      return first === '-n' ? not(isEmpty(operator)) : first === '-z' ? isEmpty(operator) : undefined;
    }
    if (first === undefined) return false;
    this.#at += 1;
    return not(isEmpty(first));
  }

  #takes(...words: readonly string[]): boolean {
    if (!words.includes(this.#words[this.#at] ?? '')) return false;
    this.#at += 1;
    return true;
  }
}

const isBinary = (word: string | undefined): boolean =>
  word !== undefined && (['=', '==', '!=', '=~', '<', '>'].includes(word) || Object.hasOwn(NUMBERS, word));

const isEmpty = (text: string): Truth =>
  text === '' ? true : /[^\0]/.test(text.replace(/\0\d+\0/g, '')) ? false : undefined;

function compare(left: string, operator: string, right: string): Truth {
  if (hasHole(left) || hasHole(right)) return undefined;
  const numbers = NUMBERS[operator];
  if (numbers !== undefined) {
    const [a, b] = [integer(left), integer(right)];
    return a === undefined || b === undefined ? undefined : numbers(a, b);
  }
  if (/[*?[]/.test(right) || !['=', '==', '!='].includes(operator)) return undefined;
  return (left === right) === (operator !== '!=');
}
