/** The syntax tree of the part of the shell's language that petrel reads. Only data. */

/** A piece of a word. `quoted`: it stands in double quotes, so its value is not split at blanks. */
export type Part =
  | { readonly type: 'text'; readonly text: string; readonly quoted: boolean }
  | (ParameterPart & { readonly quoted: boolean })
  | { readonly type: 'arithmetic'; readonly source: string; readonly quoted: boolean }
  /** `$(date)`: nothing is executed, so the value is not known. `what` is for people. */
  | { readonly type: 'command'; readonly what: string; readonly quoted: boolean };

/** `$x`, `${x}`, `${x:-word}`, `${x[@]}`, `${#x}`. */
export interface ParameterPart {
  readonly type: 'parameter';
  /** A name, a number, or one of `@ * # ? $ !`. */
  readonly name: string;
  /** `@` or `*` in brackets, or a number. */
  readonly index?: string;
  /** `${#x}`: the length. */
  readonly length?: boolean;
  /** `:-`, `%%` …; unknown ones are kept, and their value is not known. */
  readonly operator?: string;
  readonly operand?: Word;
}

export interface Word {
  readonly parts: readonly Part[];
  readonly line: number;
}

export interface Assignment {
  readonly name: string;
  /** `2` in `name[2]=…`; `?` where it is an expression. */
  readonly index?: string;
  /** `+=` */
  readonly append: boolean;
  readonly value: { readonly type: 'scalar'; readonly word: Word } | { readonly type: 'array'; readonly words: Word[] };
  readonly line: number;
}

export type Statement =
  | {
      readonly type: 'simple';
      readonly assignments: readonly Assignment[];
      readonly words: readonly Word[];
      readonly line: number;
    }
  | {
      readonly type: 'if';
      readonly clauses: readonly { readonly condition: Body; readonly body: Body }[];
      readonly otherwise: Body;
      readonly line: number;
    }
  | {
      readonly type: 'case';
      readonly subject: Word;
      readonly branches: readonly {
        readonly patterns: readonly Word[];
        readonly body: Body;
        /** It ends with `;&` or `;;&`, so that other branches may run, too. */
        readonly continues?: true;
      }[];
      readonly line: number;
    }
  /** `a && b || c`, from left to right. */
  | {
      readonly type: 'chain';
      readonly first: Statement;
      readonly rest: readonly { readonly operator: '&&' | '||'; readonly statement: Statement }[];
      readonly line: number;
    }
  | { readonly type: 'not'; readonly statement: Statement; readonly line: number }
  | { readonly type: 'group'; readonly body: Body; readonly line: number }
  /** `( … )` and every part of a pipeline: what they assign is lost. */
  | { readonly type: 'subshell'; readonly body: Body; readonly line: number }
  | { readonly type: 'function'; readonly name: string; readonly body: Statement; readonly line: number }
  /** `(( … ))` as a command. */
  | { readonly type: 'arithmetic'; readonly source: string; readonly line: number }
  /** `for`, `while`, `until`, `select`: their bodies are not read, unless it is known that none of them runs. */
  | {
      readonly type: 'loop';
      readonly what: string;
      /** The name after `for`, and the words after `in`: `"$@"` where it has none. */
      readonly variable?: string;
      readonly items?: readonly Word[];
      /** What `while` and `until` ask before each round. */
      readonly condition?: Body;
      readonly body: Body;
      readonly line: number;
    };

export type Body = readonly Statement[];

/** What the lexer gives the parser. */
export type Token =
  | { readonly type: 'word'; readonly word: Word; readonly line: number }
  | {
      readonly type: 'array';
      readonly name: string;
      readonly append: boolean;
      readonly words: Word[];
      readonly line: number;
    }
  /** `;`, `&&`, a line break … */
  | { readonly type: 'operator'; readonly text: string; readonly line: number }
  /** `(( … ))` as a command. */
  | { readonly type: 'arithmetic'; readonly source: string; readonly line: number };
