/** A cursor over tokens. */
import { TemplateError } from '../errors.ts';
import type { Token, TokenType } from './lexer.ts';

export class TokenStream {
  readonly #tokens: readonly Token[];
  #at = 0;

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens;
  }

  get current(): Token {
    return this.#tokens[this.#at] as Token;
  }

  get following(): Token {
    return (this.#tokens[this.#at + 1] ?? this.current) as Token;
  }

  get line(): number {
    return this.current.line;
  }

  next(): Token {
    const token = this.current;
    if (token.type !== 'end') this.#at++;
    return token;
  }

  isName(...names: string[]): boolean {
    return this.current.type === 'name' && names.includes(this.current.text);
  }

  isOperator(...operators: string[]): boolean {
    return this.current.type === 'operator' && operators.includes(this.current.text);
  }

  skipName(name: string): boolean {
    const found = this.isName(name);
    if (found) this.next();
    return found;
  }

  skipOperator(operator: string): boolean {
    const found = this.isOperator(operator);
    if (found) this.next();
    return found;
  }

  expect(type: TokenType): Token {
    if (this.current.type !== type) throw this.unexpected(type.replace('_', ' '));
    return this.next();
  }

  expectOperator(operator: string): Token {
    if (!this.isOperator(operator)) throw this.unexpected(`'${operator}'`);
    return this.next();
  }

  expectName(name: string): Token {
    if (!this.isName(name)) throw this.unexpected(`'${name}'`);
    return this.next();
  }

  unexpected(expected: string): TemplateError {
    const { type, text, line } = this.current;
    const found = type === 'end' ? 'the end of the template' : text === '' ? type.replace('_', ' ') : `'${text}'`;
    return new TemplateError(`expected ${expected}, got ${found}`, line);
  }
}
