/**
 * Splits template text into tokens, with the settings of transformers: trim_blocks and lstrip_blocks are on, one
 * newline at the end of the template is dropped, all line ends become `\n`.
 */
import { TemplateError } from '../errors.ts';
import { isSpace, space, strip } from '../python-strings.ts';

export type TokenType =
  | 'data'
  | 'variable_begin'
  | 'variable_end'
  | 'block_begin'
  | 'block_end'
  | 'name'
  | 'string'
  | 'integer'
  | 'float'
  | 'operator'
  | 'end';

export interface Token {
  readonly type: TokenType;
  readonly text: string;
  readonly line: number;
}

const patterns = {
  blockEnd: new RegExp(`\\+%\\}|-%\\}[${space}]*|%\\}\\n?`, 'y'),
  variableEnd: new RegExp(`-\\}\\}[${space}]*|\\}\\}`, 'y'),
  commentEnd: new RegExp(`\\+#\\}|-#\\}[${space}]*|#\\}\\n?`, 'g'),
  rawBegin: new RegExp(`\\{%([-+]?)[${space}]*raw[${space}]*(?:-%\\}[${space}]*|%\\})`, 'y'),
  rawEnd: new RegExp(`\\{%([-+]?)[${space}]*endraw[${space}]*(?:\\+%\\}|-%\\}[${space}]*|%\\}\\n?)`, 'g'),
  space: new RegExp(`[${space}]+`, 'y'),
  float: /(?<!\.)(?:\d+_)*\d+(?:(?:\.(?:\d+_)*\d+)?e[+-]?(?:\d+_)*\d+|\.(?:\d+_)*\d+)/iy,
  integer: /0b(?:_?[01])+|0o(?:_?[0-7])+|0x(?:_?[\da-f])+|[1-9](?:_?\d)*|0(?:_?0)*/iy,
  name: /[\p{L}\p{N}\p{M}\p{Pc}\u00b7\u0387\u1369-\u1371\u19da]+/uy,
  string: /'[^'\\]*(?:\\[\s\S][^'\\]*)*'|"[^"\\]*(?:\\[\s\S][^"\\]*)*"/y,
  operator: /\*\*|\/\/|==|!=|>=|<=|[-+/*%~[\](){}><=.:|,;]/y,
};

const closing: Readonly<Record<string, string>> = { '{': '}', '(': ')', '[': ']' };

export function tokenize(template: string): Token[] {
  return new Lexer(template).run();
}

class Lexer {
  readonly #source: string;
  readonly #tokens: Token[] = [];
  #at = 0;
  #line = 1;
  /** Did the last tag end its line? Then white space before the next tag is an indent. */
  #lineStarts = true;

  constructor(template: string) {
    this.#source = template.replace(/\r\n|\r/g, '\n').replace(/\n$/, '');
  }

  run(): Token[] {
    while (this.#at < this.#source.length) this.#readData();
    this.#push('end', '');
    return this.#tokens;
  }

  /** Text up to the next tag, then the tag. */
  #readData(): void {
    const start = this.#nextTag();
    if (start < 0) {
      this.#push('data', this.#source.slice(this.#at));
      this.#move(this.#source.length);
      return;
    }
    const kind = this.#source[start + 1] as string;
    const sign = /[-+]/.test(this.#source[start + 2] ?? '') ? (this.#source[start + 2] as string) : '';
    const raw = kind === '%' ? this.#match(patterns.rawBegin, start) : undefined;
    this.#pushData(start, raw === undefined ? sign : (raw[1] ?? ''), kind !== '{');
    if (raw !== undefined) return this.#readRaw(start + raw[0].length);
    this.#move(start + 2 + sign.length);
    if (kind === '#') return this.#skipComment();
    this.#push(kind === '%' ? 'block_begin' : 'variable_begin', '');
    this.#readTag(kind === '%' ? 'block_end' : 'variable_end');
  }

  #nextTag(): number {
    const found = /\{[%#{]/g;
    found.lastIndex = this.#at;
    return found.exec(this.#source)?.index ?? -1;
  }

  /** Emits the text before a tag, stripped according to the tag's sign and lstrip_blocks. */
  #pushData(end: number, sign: string, isBlock: boolean): void {
    const text = this.#source.slice(this.#at, end);
    let kept = text;
    if (sign === '-') kept = strip(text, undefined, 'right');
    else if (sign !== '+' && isBlock) {
      const lineStart = text.lastIndexOf('\n') + 1;
      if ((lineStart > 0 || this.#lineStarts) && isSpace(text.slice(lineStart))) kept = text.slice(0, lineStart);
    }
    if (kept !== '') this.#push('data', kept);
    this.#move(end);
  }

  #readRaw(from: number): void {
    this.#move(from);
    const end = this.#search(patterns.rawEnd);
    if (end === undefined) throw new TemplateError('Missing end of raw directive', this.#line);
    this.#lineStarts = this.#source[this.#at - 1] === '\n';
    this.#pushData(end.index, end[1] ?? '', true);
    this.#finishTag(end.index + end[0].length);
  }

  #skipComment(): void {
    const end = this.#search(patterns.commentEnd);
    if (end === undefined) throw new TemplateError('Missing end of comment tag', this.#line);
    this.#finishTag(end.index + end[0].length);
  }

  /** Tokens of an expression or statement, up to the end mark that is outside of all brackets. */
  #readTag(end: 'block_end' | 'variable_end'): void {
    const brackets: string[] = [];
    const endPattern = end === 'block_end' ? patterns.blockEnd : patterns.variableEnd;
    while (this.#at < this.#source.length) {
      const finish = brackets.length === 0 ? this.#match(endPattern, this.#at) : undefined;
      if (finish !== undefined) {
        this.#push(end, '');
        this.#finishTag(this.#at + finish[0].length);
        return;
      }
      this.#readToken(brackets);
    }
  }

  #readToken(brackets: string[]): void {
    if (this.#take('space') !== undefined) return;
    for (const type of ['float', 'integer', 'name', 'string'] as const) {
      const text = this.#take(type, type);
      if (text === undefined) continue;
      if (type === 'name' && !/^[\p{ID_Start}_]/u.test(text))
        throw new TemplateError('Invalid character in identifier', this.#line);
      return;
    }
    const operator = this.#take('operator', 'operator');
    if (operator === undefined)
      throw new TemplateError(`unexpected char ${JSON.stringify(this.#source[this.#at])} at ${this.#at}`, this.#line);
    if (Object.hasOwn(closing, operator)) brackets.push(closing[operator] as string);
    if (!'})]'.includes(operator)) return;
    const expected = brackets.pop();
    if (expected === undefined) throw new TemplateError(`unexpected '${operator}'`, this.#line);
    if (expected !== operator) throw new TemplateError(`unexpected '${operator}', expected '${expected}'`, this.#line);
  }

  #take(pattern: keyof typeof patterns, type?: TokenType): string | undefined {
    const match = this.#match(patterns[pattern], this.#at);
    if (match === undefined) return undefined;
    if (type !== undefined) this.#push(type, match[0]);
    this.#move(this.#at + match[0].length);
    return match[0];
  }

  #match(pattern: RegExp, at: number): RegExpExecArray | undefined {
    pattern.lastIndex = at;
    return pattern.exec(this.#source) ?? undefined;
  }

  #search(pattern: RegExp): RegExpExecArray | undefined {
    return this.#match(pattern, this.#at);
  }

  #finishTag(end: number): void {
    this.#move(end);
    this.#lineStarts = this.#source[end - 1] === '\n';
  }

  #move(to: number): void {
    for (let i = this.#at; i < to; i++) if (this.#source.charCodeAt(i) === 10) this.#line++;
    this.#at = to;
  }

  #push(type: TokenType, text: string): void {
    this.#tokens.push({ type, text, line: this.#line });
  }
}
