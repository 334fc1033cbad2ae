/** Expands words: variables, arrays, defaults and arithmetic. What is not known becomes a hole. */
import { evaluateArithmetic, integer } from './arithmetic.ts';
import { globOf } from './glob.ts';
import { hasHole, Holes } from './holes.ts';
import { LIMITS, within } from './limits.ts';
import type { ParameterPart, Part, Word } from './syntax.ts';

/** A word after expansion, with the line in which it stands. */
export interface Field {
  readonly text: string;
  readonly line: number;
  /** It stands in `"$@"` behind the arguments of the script, and is none of `$1`, `$2` …. */
  readonly isOverride?: true;
}

export type Value =
  | { readonly type: 'scalar'; readonly text: string }
  | { readonly type: 'array'; readonly items: readonly Field[] };

export class Variables {
  readonly holes = new Holes();
  readonly #values = new Map<string, Value>();
  /** `"$@"`. */
  positional: readonly Field[] = [];
  /** The script’s arguments were not given, so that `$1` is not known. */
  areArgumentsOpen = false;
  #made = 0;
  #isTest = false;

  set(name: string, value: Value): void {
    this.#values.set(name, value);
  }

  get(name: string): Value | undefined {
    return this.#values.get(name);
  }

  unset(name: string): void {
    this.#values.delete(name);
  }

  /** `shift`. Overrides stay: it is the script’s own arguments that it has read. */
  shift(count: number): void {
    this.positional = this.#from(count);
  }

  /** `$1`, `$2` …, without the overrides behind them. */
  get args(): readonly Field[] {
    return this.positional.filter(({ isOverride }) => isOverride !== true);
  }

  #from(count: number): readonly Field[] {
    return [...this.args.slice(count), ...this.positional.filter(({ isOverride }) => isOverride === true)];
  }

  /** Expands words of a test, where an argument that is not given is empty, as in a shell. */
  inTest<T>(expand: () => T): T {
    this.#isTest = true;
    const result = expand();
    this.#isTest = false;
    return result;
  }

  /** The value of `(( … ))`; undefined when it is not known. */
  arithmetic(source: string): number | undefined {
    return evaluateArithmetic(source, (name) => this.#plain({ type: 'parameter', name }));
  }

  /** The word as one text, as in an assignment. */
  text(word: Word): string {
    return word.parts.map((part) => this.#joined(part, word.line)).join('');
  }

  /** The word as a pattern of `case`: quoted characters are literal. */
  pattern(word: Word): string {
    return word.parts
      .map((part) => (part.quoted ? globOf(this.#joined(part, word.line)) : this.#joined(part, word.line)))
      .join('');
  }

  /** The word as the arguments that it becomes: none, one or many. */
  fields(word: Word): Field[] {
    const done: Field[] = [];
    let open: Field | undefined;
    for (const part of word.parts) {
      const pieces = this.#pieces(part, word.line);
      for (const [index, piece] of pieces.entries()) {
        if (index > 0 && open !== undefined) {
          done.push(open);
          open = undefined;
        }
        const isNothing = !part.quoted && piece.text === '';
        if (!isNothing || open !== undefined)
          open = {
            text: this.#measured((open?.text ?? '') + piece.text, word.line),
            line: open?.line ?? piece.line,
            ...(piece.isOverride === true && { isOverride: true as const }),
          };
      }
    }
    return open === undefined ? done : [...done, open];
  }

  #pieces(part: Part, line: number): readonly Field[] {
    const all = part.type === 'parameter' ? this.#all(part) : undefined;
    if (all !== undefined && part.type === 'parameter') {
      const joins = part.quoted && (part.name === '*' || part.index === '*');
      if (!joins) return part.quoted ? all : all.flatMap(split);
    }
    const text = this.#joined(part, line);
    return part.quoted || part.type === 'text' ? [{ text, line }] : split({ text, line });
  }

  /** `$@`, `$*`, `${x[@]}`, `${x[*]}` without an operator. */
  #all(part: ParameterPart): readonly Field[] | undefined {
    if (part.length === true) return undefined;
    if (part.operator === ':') return this.#slice(part);
    const isDefault = part.operator === undefined || ['-', ':-', '+', ':+'].includes(part.operator);
    if (!isDefault || !(part.name === '@' || part.name === '*' || part.index === '@' || part.index === '*'))
      return undefined;
    const items = this.#items(part.name);
    if (part.operator === undefined) return items;
    const isSet = items.length > 0;
    const wantsOther = part.operator.endsWith('+') ? isSet : !isSet;
    if (!wantsOther) return part.operator.endsWith('+') ? [] : items;
    return part.operand === undefined ? [] : this.fields(part.operand);
  }

  /** `${@:2}`, `${x[@]:1}`: the elements from there on. */
  #slice({ name, index, operand }: ParameterPart): readonly Field[] | undefined {
    const from = operand === undefined ? undefined : integer(this.text(operand));
    if (from === undefined || from < 0 || (index !== '@' && name !== '@')) return undefined;
    return name === '@' ? this.#from(Math.max(0, from - 1)) : this.#items(name).slice(from);
  }

  #items(name: string): readonly Field[] {
    if (name === '@' || name === '*') return this.positional;
    const value = this.#values.get(name);
    if (value === undefined) return [];
    return value.type === 'array' ? value.items : [{ text: value.text, line: 0 }];
  }

  /** The part as one text. */
  #joined(part: Part, line: number): string {
    this.#measured('', line);
    switch (part.type) {
      case 'text':
        return part.text;
      case 'command':
        return this.holes.make(line, `the output of "${part.what.slice(0, 80)}"`);
      case 'arithmetic':
        return this.#arithmetic(part.source, line);
      default:
        return this.#measured(this.#parameter(part, line), line);
    }
  }

  #arithmetic(source: string, line: number): string {
    const value = this.arithmetic(source);
    return value === undefined ? this.holes.make(line, `the arithmetic $((${source.slice(0, 80)}))`) : String(value);
  }

  #parameter(part: ParameterPart, line: number): string {
    const all = this.#all(part);
    if (all !== undefined) return all.map(({ text }) => text).join(' ');
    const value = this.#plain(part);
    if (part.length === true) return this.#length(part, value, line);
    const { operator, operand } = part;
    if (operator === undefined) return value ?? (this.#isTest && isArgument(part) ? '' : this.#unknown(part, line));
    const other = () => (operand === undefined ? '' : this.text(operand));
    const isGiven = value !== undefined && (value !== '' || !operator.startsWith(':'));
    switch (operator) {
      case '-':
      case ':-':
        return isGiven ? value : other();
      case '=':
      case ':=': {
        const text = isGiven ? value : other();
        this.set(part.name, { type: 'scalar', text });
        return text;
      }
      case '+':
      case ':+':
        return isGiven ? other() : '';
      case '?':
      case ':?':
        return isGiven ? value : this.#unknown(part, line);
      default: {
        const changed = value === undefined || hasHole(value) ? undefined : change(value, operator, operand, other);
        return changed ?? this.holes.make(line, `\${${part.name}${operator === 'unknown' ? '…' : operator}…}`);
      }
    }
  }

  #length(part: ParameterPart, value: string | undefined, line: number): string {
    if (part.index !== undefined || part.name === '@' || part.name === '*')
      return String(this.#items(part.name).length);
    return value === undefined || hasHole(value) ? this.#unknown(part, line) : String(value.length);
  }

  /** The value without operators; undefined when it is not set. */
  #plain({ name, index }: ParameterPart): string | undefined {
    if (isArgument({ name })) return this.args[Number(name) - 1]?.text;
    if (name === '0') return undefined;
    if (name === '#') return String(this.args.length);
    const value = this.#values.get(name);
    if (value?.type === 'array') return value.items[Number(index ?? 0)]?.text;
    return index === undefined || index === '0' ? value?.text : undefined;
  }

  #unknown({ name }: ParameterPart, line: number): string {
    return this.holes.make(line, this.#why(name));
  }

  #why(name: string): string {
    if (/^[A-Za-z_]/.test(name)) return `$${name}, which the script does not set (--env ${name}=…)`;
    return this.areArgumentsOpen && isArgument({ name }) ? `${argumentText(name)}, which is not given` : `$${name}`;
  }

  #measured(text: string, line: number): string {
    within('value', text.length, line);
    this.#made += 1 + text.length;
    within('expanded', this.#made, line);
    return text;
  }
}

/** `$1`, `$2` … */
const isArgument = ({ name }: Pick<ParameterPart, 'name'>): boolean => /^[1-9]\d*$/.test(name);

/** An argument of the script, with the option that gives it. */
export const argumentText = (name: string): string =>
  `$${name} (--args ${Array.from({ length: Math.min(Number(name), 9) }, () => '…').join(' ')})`;

/** Splits at blanks, as a shell splits a value that is not quoted. */
function split(field: Field): Field[] {
  return field.text.split(/[ \t\n]+/).map((text) => ({ ...field, text }));
}

// `${x,,}`, `${x##*/}`, `${x%.*}`, `${x//a/b}` with plain texts; undefined for others.
function change(value: string, operator: string, operand: Word | undefined, textOf: () => string): string | undefined {
  const text = textOf();
  switch (operator) {
    case ',,':
      return text === '' ? value.toLowerCase() : undefined;
    case '^^':
      return text === '' ? value.toUpperCase() : undefined;
    case '#':
    case '##':
    case '%':
    case '%%':
      return hasHole(text) || (operand?.parts.some(({ quoted }) => quoted) ?? false)
        ? undefined
        : cut(value, operator, text);
    case '/':
    case '//':
      return replaced(value, operator === '//', text);
    default:
      return undefined;
  }
}

/** Pattern: a text, or `*` and a text (from the start), or a text and `*` (from the end). */
function cut(value: string, operator: string, pattern: string): string | undefined {
  const fromStart = operator.startsWith('#');
  const isOpen = fromStart ? pattern.startsWith('*') : pattern.endsWith('*');
  const text = isOpen ? (fromStart ? pattern.slice(1) : pattern.slice(0, -1)) : pattern;
  if (/[*?[\\]/.test(text) || text === '') return undefined;
  if (!isOpen) {
    if (fromStart) return value.startsWith(text) ? value.slice(text.length) : value;
    return value.endsWith(text) ? value.slice(0, -text.length) : value;
  }
  const isLongest = operator.length === 2;
  const at = fromStart === isLongest ? value.lastIndexOf(text) : value.indexOf(text);
  if (at < 0) return value;
  return fromStart ? value.slice(at + text.length) : value.slice(0, at);
}

function replaced(value: string, all: boolean, operand: string): string | undefined {
  const slash = operand.indexOf('/');
  const [from, to] = slash < 0 ? [operand, ''] : [operand.slice(0, slash), operand.slice(slash + 1)];
  if (from === '' || hasHole(operand) || /[*?[\\#%]/.test(from)) return undefined;
  const parts = value.split(from);
  if (value.length + parts.length * to.length > LIMITS.value) return undefined;
  return all ? parts.join(to) : parts.length === 1 ? value : [parts[0], parts.slice(1).join(from)].join(to);
}
