/**
 * Splits a shell script into words and operators. Nothing is executed. The grammar is that of POSIX with bash's arrays:
 *
 *   word        text 'text' "text $x" $'text' \c $x ${x…} $((…)) $(…) `…`, in any mixture
 *   array       name=( word … ) and name+=( word … )
 *   operator    ; ;; & && | || ( ) and line breaks
 *   dropped     # comments, redirections with their target, here-strings, here-documents
 */
import { InvalidInputError } from '../../../../core/errors.ts';
import { within } from './limits.ts';
import type { ParameterPart, Part, Token, Word } from './syntax.ts';

/**
 * Throws InvalidInputError for an open quote or bracket, and for a script over the limits. `line`: the line of all
 * tokens; else they are counted.
 */
export function tokensOf(source: string, line?: number): Token[] {
  within('source', source.length, 1);
  return new Lexer(source, line).tokens();
}

const OPERATORS = [';;&', ';;', ';&', '&&', '||', '|&', ';', '&', '|', '(', ')'];
const BLANK = /[ \t\r]/;
const ENDS_WORD = /[ \t\r\n;&|()<>]/;
const COMMAND_FOLLOWS = ['if', 'elif', 'while', 'until', 'then', 'do', 'else', 'for', '!', '{'];
const NAME = /^[A-Za-z_]\w*/;

class Lexer {
  readonly #source: string;
  #at = 0;
  #line: number;
  readonly #countsLines: boolean;
  #depth = 0;
  #tokens: Token[] = [];
  /** Ends of here-documents that begin at the next line break. */
  #pending: { readonly end: string; readonly tabs: boolean }[] = [];

  constructor(source: string, line?: number) {
    this.#source = source;
    this.#line = line ?? 1;
    this.#countsLines = line === undefined;
  }

  tokens(): Token[] {
    for (;;) {
      this.#skipBlanks();
      if (this.#at >= this.#source.length) return this.#tokens;
      this.#tokens.push(...this.#next());
      within('tokens', this.#tokens.length, this.#line);
    }
  }

  #next(): Token[] {
    const line = this.#line;
    const char = this.#char();
    if (char === '\n') {
      this.#step();
      this.#skipHereDocuments();
      return [{ type: 'operator', text: '\n', line }];
    }
    if (this.#redirection()) return [];
    if (this.#rest(2) === '((' && this.#isAtCommand()) {
      this.#step(2);
      return [{ type: 'arithmetic', source: this.#untilClosed(line), line }];
    }
    const operator = OPERATORS.find((text) => this.#rest(text.length) === text);
    if (operator !== undefined) {
      this.#step(operator.length);
      return [{ type: 'operator', text: operator, line }];
    }
    const token: Token = this.#array() ?? { type: 'word', word: this.#word(), line };
    if (token.type === 'word' && plain(token.word) === '[[' && this.#isAtCommand()) return [token, ...this.#test(line)];
    return [token];
  }

  /** Reads the words between `[[` and `]]`, where the operators are words. */
  #test(line: number): Token[] {
    const tokens: Token[] = [];
    for (;;) {
      this.#skipBlanks();
      const at = this.#line;
      const char = this.#char();
      if (char === '') throw unclosed('[[', line);
      if (ENDS_WORD.test(char)) {
        const operator = OPERATORS.find((text) => this.#rest(text.length) === text) ?? char;
        this.#step(operator.length);
        if (operator === '\n') continue;
        const parts: Part[] = [{ type: 'text', text: operator, quoted: false }];
        tokens.push({ type: 'word', word: { parts, line: at }, line: at });
        continue;
      }
      const word = this.#word();
      tokens.push({ type: 'word', word, line: at });
      if (plain(word) === ']]') return tokens;
      within('tokens', tokens.length, line);
    }
  }

  /** `((` begins arithmetic only where a command may begin. */
  #isAtCommand(): boolean {
    const last = this.#tokens.at(-1);
    if (last === undefined || last.type === 'operator') return true;
    return last.type === 'word' && COMMAND_FOLLOWS.includes(plain(last.word));
  }

  #array(): Token | undefined {
    const start = /^([A-Za-z_]\w*)(\+?)=\(/.exec(this.#source.slice(this.#at, this.#at + 200));
    if (start === null) return undefined;
    const line = this.#line;
    this.#step(start[0].length);
    const words: Word[] = [];
    for (;;) {
      this.#skipBlanks();
      const char = this.#char();
      if (char === '') throw unclosed('(', line);
      if (char === ')') break;
      if (char === '\n') this.#step();
      else if (ENDS_WORD.test(char)) throw unexpected(char, this.#line);
      else words.push(this.#word());
      within('tokens', words.length, line);
    }
    this.#step();
    return { type: 'array', name: start[1] ?? '', append: start[2] === '+', words, line };
  }

  #word(): Word {
    const line = this.#line;
    const parts: Part[] = [];
    while (this.#at < this.#source.length && !ENDS_WORD.test(this.#char())) this.#part(parts);
    return { parts, line };
  }

  /** One part of a word that stands outside quotes. */
  #part(parts: Part[]): void {
    const char = this.#char();
    if (char === "'") parts.push({ type: 'text', text: this.#single(), quoted: true });
    else if (char === '"') this.#double(parts);
    else if (char === '\\') {
      this.#step();
      if (this.#char() !== '\n') addText(parts, this.#char(), true);
      this.#step();
    } else if (char === '$' || char === '`') this.#dollar(parts, false);
    else {
      addText(parts, char, false);
      this.#step();
    }
  }

  #single(): string {
    const line = this.#line;
    const end = this.#source.indexOf("'", this.#at + 1);
    if (end < 0) throw unclosed("'", line);
    const text = this.#source.slice(this.#at + 1, end);
    this.#step(end + 1 - this.#at);
    return text;
  }

  #double(parts: Part[]): void {
    const line = this.#line;
    this.#step();
    const before = parts.length;
    for (;;) {
      const char = this.#char();
      if (char === '') throw unclosed('"', line);
      if (char === '"') break;
      if (char === '\\' && '$`"\\\n'.includes(this.#source[this.#at + 1] ?? ' ')) {
        this.#step();
        if (this.#char() !== '\n') addText(parts, this.#char(), true);
        this.#step();
      } else if (char === '$' || char === '`') this.#dollar(parts, true);
      else {
        addText(parts, char, true);
        this.#step();
      }
    }
    this.#step();
    if (parts.length === before) addText(parts, '', true); // "" is a word
  }

  /** Everything that begins with `$`, and backquotes. */
  #dollar(parts: Part[], quoted: boolean): void {
    const line = this.#line;
    this.#depth += 1;
    within('depth', this.#depth, line);
    if (this.#char() === '`') {
      this.#step();
      parts.push({ type: 'command', what: this.#untilBackquote(line), quoted });
    } else if (this.#rest(3) === '$((') {
      this.#step(3);
      parts.push({ type: 'arithmetic', source: this.#untilClosed(line), quoted });
    } else if (this.#rest(2) === '$(') {
      this.#step(2);
      parts.push({ type: 'command', what: this.#commands(line).trim(), quoted });
    } else if (this.#rest(2) === '${') {
      this.#step(2);
      parts.push({ ...this.#braced(line, quoted), quoted });
    } else if (!quoted && this.#rest(2) === '$"') {
      this.#step();
      this.#double(parts);
    } else if (!quoted && this.#rest(2) === "$'") {
      this.#step();
      parts.push({ type: 'text', text: escaped(this.#single()), quoted: true });
    } else this.#bareParameter(parts, quoted);
    this.#depth -= 1;
  }

  #bareParameter(parts: Part[], quoted: boolean): void {
    const name = /^\$([A-Za-z_]\w*|[0-9@*#?$!])/.exec(this.#source.slice(this.#at, this.#at + 300))?.[1];
    if (name === undefined) addText(parts, '$', quoted);
    else parts.push({ type: 'parameter', name, quoted });
    this.#step(1 + (name?.length ?? 0));
  }

  /** Reads what follows `${`. */
  #braced(line: number, quoted: boolean): ParameterPart {
    const length = this.#char() === '#' && /[A-Za-z_@*]/.test(this.#source[this.#at + 1] ?? '');
    if (length) this.#step();
    const rest = this.#source.slice(this.#at, this.#at + 300);
    const name = NAME.exec(rest)?.[0] ?? /^[0-9]+|^[@*#?$!]/.exec(rest)?.[0] ?? '';
    this.#step(name.length);
    const index = /^\[([@*]|[0-9]+)\]/.exec(this.#source.slice(this.#at, this.#at + 20))?.[1];
    if (index !== undefined) this.#step(index.length + 2);
    const base = { type: 'parameter' as const, name, ...(index !== undefined && { index }), ...(length && { length }) };
    const isPlain = name !== '' && this.#char() === '}';
    const operator =
      /^(?::?[-=+?]|##?|%%?|\/\/?|,,?|\^\^?|:)/.exec(this.#source.slice(this.#at, this.#at + 2))?.[0] ?? 'unknown';
    if (!isPlain && operator !== 'unknown') this.#step(operator.length);
    const operand = this.#operand(line, quoted);
    return isPlain ? base : { ...base, operator: name === '' ? 'unknown' : operator, operand };
  }

  /** Reads up to the closing brace, which is taken too. In double quotes a single quote is text. */
  #operand(line: number, quoted: boolean): Word {
    const parts: Part[] = [];
    for (;;) {
      const char = this.#char();
      if (char === '') throw unclosed('${', line);
      if (char === '}') break;
      if (quoted && char === "'") {
        addText(parts, char, true);
        this.#step();
      } else this.#part(parts);
    }
    this.#step();
    return { parts, line };
  }

  /** Reads the commands of `$( … )`, with their comments and here-documents. The closing bracket is taken, too. */
  #commands(line: number): string {
    const start = this.#at;
    const outer = [this.#tokens, this.#pending] as const;
    [this.#tokens, this.#pending] = [[], []];
    const open: ('(' | 'case')[] = [];
    for (;;) {
      this.#skipBlanks();
      const char = this.#char();
      if (char === '') throw unclosed('$(', line);
      if (char === ')' && open.length === 0) break;
      const isAtCommand = this.#isAtCommand();
      const next = this.#next();
      const [token] = next;
      const word = token?.type === 'word' && isAtCommand ? plain(token.word) : '';
      const operator = token?.type === 'operator' ? token.text : '';
      if (operator === '(' || word === 'case') open.push(operator === '(' ? '(' : 'case');
      // The bracket after a pattern of `case` closes nothing.
      else if ((operator === ')' && open.at(-1) === '(') || (word === 'esac' && open.at(-1) === 'case')) open.pop();
      this.#tokens.push(...next);
      within('tokens', this.#tokens.length, line);
    }
    [this.#tokens, this.#pending] = outer;
    const text = this.#source.slice(start, this.#at);
    this.#step();
    return text;
  }

  /** The text up to `))` at the same level, which is taken too. */
  #untilClosed(line: number): string {
    const start = this.#at;
    let open = 0;
    for (;;) {
      const char = this.#char();
      if (char === '') throw unclosed('((', line);
      if (open === 0 && this.#rest(2) === '))') break;
      if (char === '\\') this.#step(2);
      else {
        if (char === '(') open += 1;
        if (char === ')') open -= 1;
        this.#step();
      }
    }
    const text = this.#source.slice(start, this.#at);
    this.#step(2);
    return text;
  }

  #untilBackquote(line: number): string {
    const start = this.#at;
    while (this.#char() !== '`') {
      if (this.#char() === '') throw unclosed('`', line);
      this.#step(this.#char() === '\\' ? 2 : 1);
    }
    const text = this.#source.slice(start, this.#at);
    this.#step();
    return text;
  }

  /** `>file`, `2>&1`, `<<EOF` …: taken and dropped. */
  #redirection(): boolean {
    const found = /^(?:\d*(?:<<-?(?!<)|<<<|>>|>\||[<>]&|<>|<(?!\()|>(?!\())|&>>?)/.exec(
      this.#source.slice(this.#at, this.#at + 8),
    )?.[0];
    if (found === undefined) return this.#processSubstitution();
    this.#step(found.length);
    while (BLANK.test(this.#char())) this.#step();
    const start = this.#at;
    this.#word();
    if (/^\d*<<-?$/.test(found))
      this.#pending.push({ end: unquoted(this.#source.slice(start, this.#at)), tabs: found.endsWith('-') });
    return true;
  }

  /** `<( … )`: a file that a command makes. Dropped, like every input of a command. */
  #processSubstitution(): boolean {
    if (!['<(', '>('].includes(this.#rest(2))) return false;
    const line = this.#line;
    this.#step(2);
    this.#depth += 1;
    within('depth', this.#depth, line);
    this.#commands(line);
    this.#depth -= 1;
    return true;
  }

  #skipHereDocuments(): void {
    for (const { end, tabs } of this.#pending) {
      for (;;) {
        if (this.#at >= this.#source.length) break;
        const stop = this.#source.indexOf('\n', this.#at);
        const line = this.#source.slice(this.#at, stop < 0 ? undefined : stop);
        this.#step(line.length + 1);
        const text = line.replace(/\r$/, '');
        if ((tabs ? text.replace(/^\t+/, '') : text) === end) break;
      }
    }
    this.#pending = [];
  }

  /** Blanks, continued lines and comments. */
  #skipBlanks(): void {
    for (;;) {
      if (BLANK.test(this.#char())) this.#step();
      else if (this.#rest(2) === '\\\n') this.#step(2);
      else if (this.#rest(3) === '\\\r\n') this.#step(3);
      else if (this.#char() === '#') {
        const end = this.#source.indexOf('\n', this.#at);
        this.#step((end < 0 ? this.#source.length : end) - this.#at);
      } else return;
    }
  }

  #char(): string {
    return this.#source[this.#at] ?? '';
  }

  #rest(length: number): string {
    return this.#source.slice(this.#at, this.#at + length);
  }

  #step(count = 1): void {
    for (let i = 0; i < count; i += 1) {
      if (this.#countsLines && this.#source[this.#at] === '\n') this.#line += 1;
      this.#at += 1;
    }
  }
}

/** Adjacent text becomes one part. */
function addText(parts: Part[], text: string, quoted: boolean): void {
  const last = parts.at(-1);
  if (last?.type === 'text' && last.quoted === quoted) parts[parts.length - 1] = { ...last, text: last.text + text };
  else parts.push({ type: 'text', text, quoted });
}

/** The word's text where it has no expansions; else ''. */
export function plain(word: Word): string {
  return word.parts.every((part) => part.type === 'text')
    ? word.parts.map((part) => (part.type === 'text' ? part.text : '')).join('')
    : '';
}

/** The word that ends a here-document, as it stands in the script: nothing in it is expanded. */
const unquoted = (word: string): string => word.replace(/\\(.)/g, '$1').replace(/["']/g, '');

/** `$'a\nb'`; only the escapes that scripts use. */
function escaped(text: string): string {
  return text.replace(/\\([nt\\'"])/g, (_, char: string) => ({ n: '\n', t: '\t' })[char] ?? char);
}

function unclosed(what: string, line: number): InvalidInputError {
  return new InvalidInputError(`not a shell script that petrel can read: the ${what} in line ${line} is not closed`, {
    where: `line ${line}`,
  });
}

function unexpected(what: string, line: number): InvalidInputError {
  return new InvalidInputError(`not a shell script that petrel can read: "${what}" is not expected in line ${line}`, {
    where: `line ${line}`,
  });
}
