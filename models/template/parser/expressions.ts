/** Parses expressions, from the weakest binding (inline if) to the strongest (names, literals, brackets). */
import { TemplateError } from '../errors.ts';
import type { Arguments, CompareOperator, Expression } from '../nodes.ts';
import type { BinaryOperator } from '../operators.ts';
import { constants, floatLiteral, integerLiteral, stringLiteral } from './literals.ts';
import { TokenStream } from './stream.ts';

const comparisons: readonly string[] = ['==', '!=', '<', '<=', '>', '>='];

export class ExpressionParser extends TokenStream {
  /** Names read so far, for each macro whose body is being parsed. */
  protected readonly reading: Set<string>[] = [];

  parseExpression(conditional = true): Expression {
    return conditional ? this.#parseConditional() : this.#parseOr();
  }

  /**
   * One expression, or several separated by commas: a tuple. Ends at the end of the tag, a bracket, or one of `ends`.
   */
  parseTuple({
    conditional = true,
    ends = [],
    parentheses = false,
  }: {
    conditional?: boolean;
    ends?: string[];
    parentheses?: boolean;
  } = {}): Expression {
    const { line } = this;
    const items: Expression[] = [];
    let isTuple = false;
    for (;;) {
      if (items.length > 0) this.expectOperator(',');
      if (this.#atTupleEnd(ends)) break;
      items.push(this.parseExpression(conditional));
      if (!this.isOperator(',')) break;
      isTuple = true;
    }
    const [only] = items;
    if (!isTuple && only !== undefined) return only;
    if (!isTuple && !parentheses) throw this.unexpected('an expression');
    return { type: 'tuple', items, line };
  }

  #atTupleEnd(ends: readonly string[]): boolean {
    const { type } = this.current;
    return (
      type === 'variable_end' || type === 'block_end' || type === 'end' || this.isOperator(')') || this.isName(...ends)
    );
  }

  #parseConditional(): Expression {
    let { line } = this;
    let then = this.#parseOr();
    while (this.skipName('if')) {
      const test = this.#parseOr();
      const otherwise = this.skipName('else') ? this.#parseConditional() : undefined;
      then = { type: 'conditional', test, then, line, ...(otherwise === undefined ? {} : { otherwise }) };
      line = this.line;
    }
    return then;
  }

  #parseOr(): Expression {
    let left = this.#parseAnd();
    while (this.isName('or')) {
      const { line } = this.next();
      left = { type: 'or', left, right: this.#parseAnd(), line };
    }
    return left;
  }

  #parseAnd(): Expression {
    let left = this.#parseNot();
    while (this.isName('and')) {
      const { line } = this.next();
      left = { type: 'and', left, right: this.#parseNot(), line };
    }
    return left;
  }

  #parseNot(): Expression {
    if (!this.isName('not')) return this.#parseCompare();
    const { line } = this.next();
    return { type: 'not', operand: this.#parseNot(), line };
  }

  #parseCompare(): Expression {
    const { line } = this;
    const first = this.#parseSum();
    const rest: [CompareOperator, Expression][] = [];
    for (;;) {
      if (this.isOperator(...comparisons)) rest.push([this.next().text as CompareOperator, this.#parseSum()]);
      else if (this.skipName('in')) rest.push(['in', this.#parseSum()]);
      else if (this.isName('not') && this.following.type === 'name' && this.following.text === 'in') {
        this.next();
        this.next();
        rest.push(['not in', this.#parseSum()]);
      } else break;
    }
    return rest.length === 0 ? first : { type: 'compare', first, rest, line };
  }

  #parseSum(): Expression {
    return this.#parseBinary(['+', '-'], () => this.#parseConcat());
  }

  #parseConcat(): Expression {
    const { line } = this;
    const first = this.#parseProduct();
    const items = [first];
    while (this.skipOperator('~')) items.push(this.#parseProduct());
    return items.length === 1 ? first : { type: 'concat', items, line };
  }

  #parseProduct(): Expression {
    return this.#parseBinary(['*', '/', '//', '%'], () => this.#parseBinary(['**'], () => this.#parseUnary(true)));
  }

  #parseBinary(operators: readonly BinaryOperator[], operand: () => Expression): Expression {
    let left = operand();
    while (this.isOperator(...operators)) {
      const { text, line } = this.next();
      left = { type: 'binary', operator: text as BinaryOperator, left, right: operand(), line };
    }
    return left;
  }

  #parseUnary(withFilter: boolean): Expression {
    const { line } = this;
    let node: Expression;
    if (this.isOperator('-', '+')) {
      const sign = this.next().text as '-' | '+';
      node = { type: 'sign', sign, operand: this.#parseUnary(false), line };
    } else node = this.#parsePrimary();
    node = this.#parsePostfix(node);
    return withFilter ? this.#parseFiltersAndTests(node) : node;
  }

  #parsePrimary(): Expression {
    const { type, text, line } = this.current;
    if (type === 'name') {
      this.next();
      const constant = constants.get(text);
      if (constant !== undefined) return { type: 'constant', value: constant, line };
      for (const names of this.reading) names.add(text);
      return { type: 'name', name: text, line };
    }
    if (type === 'string') {
      let value = '';
      while (this.current.type === 'string') value += stringLiteral(this.next().text, line);
      return { type: 'constant', value, line };
    }
    if (type === 'integer' || type === 'float') {
      this.next();
      return { type: 'constant', value: type === 'integer' ? integerLiteral(text) : floatLiteral(text), line };
    }
    if (this.skipOperator('(')) {
      const inner = this.parseTuple({ parentheses: true });
      this.expectOperator(')');
      return inner;
    }
    if (this.isOperator('[')) return this.#parseList();
    if (this.isOperator('{')) return this.#parseDict();
    throw this.unexpected('an expression');
  }

  #parseList(): Expression {
    const { line } = this.expectOperator('[');
    const items: Expression[] = [];
    while (!this.isOperator(']')) {
      if (items.length > 0) this.expectOperator(',');
      if (this.isOperator(']')) break;
      items.push(this.parseExpression());
    }
    this.expectOperator(']');
    return { type: 'list', items, line };
  }

  #parseDict(): Expression {
    const { line } = this.expectOperator('{');
    const pairs: [Expression, Expression][] = [];
    while (!this.isOperator('}')) {
      if (pairs.length > 0) this.expectOperator(',');
      if (this.isOperator('}')) break;
      const key = this.parseExpression();
      this.expectOperator(':');
      pairs.push([key, this.parseExpression()]);
    }
    this.expectOperator('}');
    return { type: 'dict', pairs, line };
  }

  #parsePostfix(start: Expression): Expression {
    let node = start;
    for (;;) {
      if (this.isOperator('.')) node = this.#parseAttribute(node);
      else if (this.isOperator('[')) node = this.#parseSubscript(node);
      else if (this.isOperator('(')) node = this.#parseCall(node);
      else return node;
    }
  }

  #parseFiltersAndTests(start: Expression): Expression {
    let node = start;
    for (;;) {
      if (this.isOperator('|')) node = this.parseFilters(node) as Expression;
      else if (this.isName('is')) node = this.#parseTest(node);
      else if (this.isOperator('(')) node = this.#parseCall(node);
      else return node;
    }
  }

  #parseAttribute(object: Expression): Expression {
    const { line } = this.expectOperator('.');
    const { type, text } = this.next();
    if (type === 'name') return { type: 'attribute', object, name: text, line };
    if (type === 'integer')
      return { type: 'item', object, key: { type: 'constant', value: integerLiteral(text), line }, line };
    throw new TemplateError('expected name or number after a dot', line);
  }

  #parseSubscript(object: Expression): Expression {
    const { line } = this.expectOperator('[');
    const keys: Expression[] = [];
    while (!this.isOperator(']')) {
      if (keys.length > 0) this.expectOperator(',');
      keys.push(this.#parseKey());
    }
    this.expectOperator(']');
    const [only] = keys;
    return {
      type: 'item',
      object,
      key: keys.length === 1 && only !== undefined ? only : { type: 'tuple', items: keys, line },
      line,
    };
  }

  /** A key, or `start:stop:step`, in which any part may be missing. */
  #parseKey(): Expression {
    const { line } = this;
    const start = this.isOperator(':') ? undefined : this.parseExpression();
    if (start !== undefined && !this.isOperator(':')) return start;
    this.expectOperator(':');
    const stop = this.isOperator(':', ']', ',') ? undefined : this.parseExpression();
    const step = this.skipOperator(':') && !this.isOperator(']', ',') ? this.parseExpression() : undefined;
    return { type: 'slice', line, ...(start && { start }), ...(stop && { stop }), ...(step && { step }) };
  }

  #parseCall(callee: Expression): Expression & { type: 'call' } {
    const { line } = this;
    return { type: 'call', callee, args: this.#parseArguments(), line };
  }

  #parseArguments(): Arguments {
    const { line } = this.expectOperator('(');
    const positional: Expression[] = [];
    const keywords: [string, Expression][] = [];
    let spread: Expression | undefined;
    let spreadKeywords: Expression | undefined;
    const ensure = (valid: boolean): void => {
      if (!valid) throw new TemplateError('invalid syntax for function call expression', line);
    };
    for (let first = true; !this.isOperator(')'); first = false) {
      if (!first) this.expectOperator(',');
      if (this.isOperator(')')) break;
      if (this.skipOperator('*')) {
        ensure(spread === undefined && spreadKeywords === undefined);
        spread = this.parseExpression();
      } else if (this.skipOperator('**')) {
        ensure(spreadKeywords === undefined);
        spreadKeywords = this.parseExpression();
      } else if (this.current.type === 'name' && this.following.type === 'operator' && this.following.text === '=') {
        ensure(spreadKeywords === undefined);
        const name = this.next().text;
        this.next();
        keywords.push([name, this.parseExpression()]);
      } else {
        ensure(spread === undefined && spreadKeywords === undefined && keywords.length === 0);
        positional.push(this.parseExpression());
      }
    }
    this.expectOperator(')');
    return { positional, keywords, ...(spread && { spread }), ...(spreadKeywords && { spreadKeywords }) };
  }

  /** `| name(args) | …`; with `inline` the first filter has no bar before it. */
  parseFilters(input: Expression | undefined, inline = false): Expression | undefined {
    let node = input;
    for (let first = inline; first || this.isOperator('|'); first = false) {
      if (!first) this.next();
      const { line } = this;
      const name = this.#dottedName();
      const args = this.isOperator('(') ? this.#parseArguments() : noArguments;
      node = { type: 'filter', name, args, line, ...(node === undefined ? {} : { input: node }) };
    }
    return node;
  }

  #parseTest(input: Expression): Expression {
    const { line } = this.next();
    const negated = this.skipName('not');
    const name = this.#dottedName();
    const node: Expression = { type: 'test', name, input, args: this.#testArguments(), line };
    return negated ? { type: 'not', operand: node, line } : node;
  }

  /** Arguments in brackets, or one operand without brackets: `is divisibleby 3`. */
  #testArguments(): Arguments {
    if (this.isOperator('(')) return this.#parseArguments();
    const { type } = this.current;
    const starts =
      type === 'name' || type === 'string' || type === 'integer' || type === 'float' || this.isOperator('[', '{');
    if (!starts || this.isName('else', 'or', 'and')) return noArguments;
    if (this.isName('is')) throw new TemplateError('You cannot chain multiple tests with is', this.line);
    return { ...noArguments, positional: [this.#parsePostfix(this.#parsePrimary())] };
  }

  #dottedName(): string {
    let name = this.expect('name').text;
    while (this.skipOperator('.')) name += `.${this.expect('name').text}`;
    return name;
  }
}

const noArguments: Arguments = { positional: [], keywords: [] };
