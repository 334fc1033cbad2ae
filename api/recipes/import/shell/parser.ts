/**
 * Parses words and operators to statements. Loops, which are not followed, keep the statements inside, so that it is
 * known which variables they could change.
 */
import { InvalidInputError } from '../../../../core/errors.ts';
import { plain, tokensOf } from './lexer.ts';
import { within } from './limits.ts';
import type { Assignment, Body, Part, Statement, Token, Word } from './syntax.ts';

/**
 * Throws InvalidInputError with the line where a construct is not complete, and for a script over the limits. `line`:
 * everything stands in this line of another script.
 */
export function parseScript(source: string, line?: number): Body {
  return new Parser(tokensOf(source, line)).script();
}

/** Commands whose words may be assignments. */
const DECLARING = new Set(['export', 'local', 'declare', 'readonly', 'typeset']);
const LOOPS = new Set(['for', 'while', 'until', 'select']);

class Parser {
  readonly #tokens: readonly Token[];
  #at = 0;
  #depth = 0;

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens;
  }

  script(): Body {
    const body = this.#body([]);
    if (this.#token() !== undefined) throw this.#unexpected('the end of the script');
    return body;
  }

  /** Statements up to one of the keywords or operators, which is not taken. */
  #body(ends: readonly string[]): Body {
    const statements: Statement[] = [];
    this.#depth += 1;
    within('depth', this.#depth, this.#line());
    for (;;) {
      this.#skip(';', '&', '\n');
      if (this.#token() === undefined || this.#isAt(...ends)) break;
      statements.push(this.#chain());
    }
    this.#depth -= 1;
    return statements;
  }

  #chain(): Statement {
    const line = this.#line();
    const first = this.#pipeline();
    const rest: { operator: '&&' | '||'; statement: Statement }[] = [];
    for (;;) {
      const operator = (['&&', '||'] as const).find((text) => this.#takes(text));
      if (operator === undefined) break;
      this.#skipLines();
      rest.push({ operator, statement: this.#pipeline() });
    }
    return rest.length === 0 ? first : { type: 'chain', first, rest, line };
  }

  #pipeline(): Statement {
    const line = this.#line();
    let not = false;
    while (this.#takesWord('!')) not = !not;
    const parts = [this.#command()];
    while (this.#takes('|', '|&')) {
      this.#skipLines();
      parts.push(this.#command());
    }
    const [first] = parts;
    if (first === undefined) throw this.#unexpected('a command');
    const whole: Statement = parts.length === 1 ? first : { type: 'subshell', body: parts, line };
    return not ? { type: 'not', statement: whole, line } : whole;
  }

  #command(): Statement {
    const line = this.#line();
    const token = this.#token();
    if (token?.type === 'arithmetic') {
      this.#at += 1;
      return { type: 'arithmetic', source: token.source, line };
    }
    if (this.#takes('(')) {
      const body = this.#body([')']);
      this.#expect(')', line);
      return { type: 'subshell', body, line };
    }
    const keyword = this.#keyword();
    switch (keyword) {
      case 'if':
        return this.#if(line);
      case 'case':
        return this.#case(line);
      case '{':
        return this.#group(line);
      case 'function':
        return this.#function(line);
      default:
        if (LOOPS.has(keyword)) return this.#loop(keyword, line);
        return this.#isFunction() ? this.#function(line) : this.#simple(line);
    }
  }

  #if(line: number): Statement {
    const clauses: { condition: Body; body: Body }[] = [];
    let otherwise: Body = [];
    this.#at += 1;
    for (;;) {
      const condition = this.#body(['then']);
      this.#expect('then', line);
      clauses.push({ condition, body: this.#body(['elif', 'else', 'fi']) });
      if (!this.#takesWord('elif')) break;
    }
    if (this.#takesWord('else')) otherwise = this.#body(['fi']);
    this.#expect('fi', line);
    return { type: 'if', clauses, otherwise, line };
  }

  #case(line: number): Statement {
    this.#at += 1;
    const subject = this.#takeWord('a word after case');
    this.#skipLines();
    this.#expect('in', line);
    const branches: { patterns: Word[]; body: Body; continues?: true }[] = [];
    for (;;) {
      this.#skipLines();
      if (this.#takesWord('esac')) return { type: 'case', subject, branches, line };
      this.#takes('(');
      const patterns = [this.#takeWord('a pattern')];
      while (this.#takes('|')) patterns.push(this.#takeWord('a pattern'));
      this.#expect(')', line);
      const body = this.#body([';;', ';&', ';;&', 'esac']);
      branches.push({ patterns, body, ...(this.#takes(';&', ';;&') && { continues: true as const }) });
      this.#takes(';;');
    }
  }

  #group(line: number): Statement {
    this.#at += 1;
    const body = this.#body(['}']);
    this.#expect('}', line);
    return { type: 'group', body, line };
  }

  #loop(keyword: string, line: number): Statement {
    this.#at += 1;
    const head = keyword === 'for' || keyword === 'select' ? this.#items() : { condition: this.#body(['do']) };
    this.#expect('do', line);
    const body = this.#body(['done']);
    this.#expect('done', line);
    return { type: 'loop', what: keyword, ...head, body, line };
  }

  /** `x in a b` after `for`; without a name for `for (( … ))`. */
  #items(): { readonly variable?: string; readonly items?: readonly Word[] } {
    const words: Word[] = [];
    for (let token = this.#token(); token !== undefined && !this.#isAt('do'); token = this.#token()) {
      if (token.type === 'word') words.push(token.word);
      this.#at += 1;
    }
    const [name, between, ...items] = words;
    if (name === undefined) return {};
    return { variable: plain(name), items: between === undefined ? [allArguments] : items };
  }

  /** `name() …` */
  #isFunction(): boolean {
    const [name, open, close] = this.#tokens.slice(this.#at, this.#at + 3);
    const is = (token: Token | undefined, text: string) => token?.type === 'operator' && token.text === text;
    return name?.type === 'word' && is(open, '(') && is(close, ')');
  }

  #function(line: number): Statement {
    this.#takesWord('function');
    const name = plain(this.#takeWord('a name'));
    if (this.#takes('(')) this.#expect(')', line);
    this.#skipLines();
    this.#depth += 1;
    within('depth', this.#depth, line);
    const body = this.#command();
    this.#depth -= 1;
    return { type: 'function', name, body, line };
  }

  #simple(line: number): Statement {
    const assignments: Assignment[] = [];
    const words: Word[] = [];
    for (;;) {
      const token = this.#token();
      if (token === undefined || token.type === 'operator' || token.type === 'arithmetic') break;
      this.#at += 1;
      const declares = words[0] !== undefined && DECLARING.has(plain(words[0]));
      if (token.type === 'array') {
        if (words.length > 0 && !declares) throw this.#unexpected('a word', token);
        assignments.push({ ...token, value: { type: 'array', words: token.words } });
        continue;
      }
      const assignment = words.length === 0 || declares ? assignmentOf(token.word, declares) : undefined;
      if (assignment === undefined) words.push(token.word);
      else assignments.push(assignment);
    }
    if (assignments.length === 0 && words.length === 0) throw this.#unexpected('a command');
    return { type: 'simple', assignments, words, line };
  }

  #takeWord(what: string): Word {
    const token = this.#token();
    if (token?.type !== 'word') throw this.#unexpected(what);
    this.#at += 1;
    return token.word;
  }

  #expect(text: string, line: number): void {
    if (!this.#takes(text) && !this.#takesWord(text)) throw this.#unexpected(`"${text}" for line ${line}`);
  }

  #skipLines(): void {
    this.#skip('\n');
  }

  #skip(...operators: readonly string[]): void {
    let more = true;
    while (more) more = this.#takes(...operators);
  }

  #takes(...operators: readonly string[]): boolean {
    const token = this.#token();
    if (token?.type !== 'operator' || !operators.includes(token.text)) return false;
    this.#at += 1;
    return true;
  }

  #takesWord(text: string): boolean {
    if (this.#keyword() !== text) return false;
    this.#at += 1;
    return true;
  }

  #isAt(...texts: readonly string[]): boolean {
    const token = this.#token();
    return token?.type === 'operator' ? texts.includes(token.text) : texts.includes(this.#keyword());
  }

  /** The word here, if it is one text without quotes. */
  #keyword(): string {
    const token = this.#token();
    const [part, ...others] = token?.type === 'word' ? token.word.parts : [];
    return part?.type === 'text' && !part.quoted && others.length === 0 ? part.text : '';
  }

  #token(): Token | undefined {
    return this.#tokens[this.#at];
  }

  #line(): number {
    return (this.#token() ?? this.#tokens.at(-1))?.line ?? 1;
  }

  #unexpected(wanted: string, found = this.#token()): InvalidInputError {
    const line = found?.line ?? this.#line();
    const what = found === undefined ? 'the end' : found.type === 'operator' ? JSON.stringify(found.text) : 'this word';
    return new InvalidInputError(`not a shell script that petrel can read: expected ${wanted}, got ${what}`, {
      where: `line ${line}`,
    });
  }
}

/** `name=value`, `name+=value` or `name[1]=value`; undefined for other words. `declares`: it may stand in quotes. */
function assignmentOf(word: Word, declares: boolean): Assignment | undefined {
  const [first, ...others] = word.parts;
  if (first?.type !== 'text' || (first.quoted && !declares)) return undefined;
  const match = /^([A-Za-z_]\w*)(?:\[([^\]]*)\])?(\+?)=/.exec(first.text);
  if (match === null) return elementOf(word);
  const rest: Part = { ...first, text: first.text.slice(match[0].length) };
  const [, name = '', index, plus] = match;
  const value = { type: 'scalar' as const, word: { parts: [rest, ...others], line: word.line } };
  const place = index === undefined ? {} : { index: /^\d{1,4}$/.test(index) ? index : '?' };
  return { name, ...place, append: plus === '+', value, line: word.line };
}

/** `name[$i]=value`: which element it is depends on a variable. */
function elementOf(word: Word): Assignment | undefined {
  const [first, ...others] = word.parts;
  const name = first?.type === 'text' && !first.quoted ? /^([A-Za-z_]\w*)\[/.exec(first.text)?.[1] : undefined;
  const closes = others.findIndex((part) => part.type === 'text' && !part.quoted && /^[^\]]*\]\+?=/.test(part.text));
  if (name === undefined || closes < 0) return undefined;
  const value = { type: 'scalar' as const, word: { parts: others.slice(closes), line: word.line } };
  return { name, index: '?', append: false, value, line: word.line };
}

const allArguments: Word = { parts: [{ type: 'parameter', name: '@', quoted: true }], line: 0 };
