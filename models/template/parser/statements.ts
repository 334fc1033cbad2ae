/** Parses statements: the content between `{%` and `%}`. */
import { TemplateError } from '../errors.ts';
import type { Expression, MacroBody, Parameter, Statement, Target } from '../nodes.ts';
import { ExpressionParser } from './expressions.ts';
import { tokenize } from './lexer.ts';
import { constants } from './literals.ts';

/** Throws TemplateError for an invalid template. */
export function parseTemplate(template: string): readonly Statement[] {
  return new StatementParser(tokenize(template)).parseAll();
}

class StatementParser extends ExpressionParser {
  /** Number of loops around the current place, inside its macro. */
  #loops = 0;
  /** Open tags, for the message when one of them is never closed. */
  readonly #open: { readonly tag: string; readonly line: number }[] = [];

  readonly #tags: Readonly<Record<string, (line: number) => Statement>> = {
    for: (line) => this.#parseFor(line),
    if: (line) => this.#parseIf(line),
    set: (line) => this.#parseSet(line),
    macro: (line) => ({ type: 'macro', macro: this.#parseMacro(), line }),
    call: (line) => this.#parseCallBlock(line),
    filter: (line) => ({
      type: 'filter_block',
      filter: this.parseFilters(undefined, true) as Expression,
      body: this.#parseBody('endfilter'),
      line,
    }),
    with: (line) => this.#parseWith(line),
    block: (line) => this.#parseBlock(line),
    generation: (line) => ({
      type: 'generation',
      body: this.#outsideLoops(() => this.#parseBody('endgeneration')),
      line,
    }),
    print: (line) => this.#parsePrint(line),
    break: (line) => this.#parseJump('break', line),
    continue: (line) => this.#parseJump('continue', line),
    include: (line) => this.#parseUnsupported('include', line),
    import: (line) => this.#parseUnsupported('import', line),
    from: (line) => this.#parseUnsupported('from', line),
    extends: (line) => this.#parseUnsupported('extends', line),
    autoescape: (line) => this.#parseUnsupported('autoescape', line),
  };

  parseAll(): readonly Statement[] {
    return this.#parseUntil([]);
  }

  /** Statements up to one of the end tags. Afterwards the name of the end tag is the current token. */
  #parseUntil(ends: readonly string[]): Statement[] {
    const body: Statement[] = [];
    for (;;) {
      const { type, text, line } = this.current;
      if (type === 'end') {
        if (ends.length === 0) return body;
        const open = this.#open.at(-1);
        throw new TemplateError(
          `Unexpected end of template: '${open?.tag}' of line ${open?.line} needs ${ends.map((end) => `'${end}'`).join(' or ')}`,
          line,
        );
      }
      this.next();
      if (type === 'data') body.push({ type: 'text', text, line });
      else if (type === 'variable_begin') {
        body.push({ type: 'output', value: this.parseTuple(), line });
        this.expect('variable_end');
      } else {
        if (this.isName(...ends)) return body;
        body.push(this.#parseStatement());
        this.expect('block_end');
      }
    }
  }

  #parseStatement(): Statement {
    const { text, line } = this.expect('name');
    const parse = Object.hasOwn(this.#tags, text) ? this.#tags[text] : undefined;
    if (parse === undefined) {
      const open = this.#open.at(-1);
      const inside = open === undefined ? '' : ` inside '${open.tag}' of line ${open.line}`;
      throw new TemplateError(`Encountered unknown tag '${text}'${inside}`, line);
    }
    this.#open.push({ tag: text, line });
    const statement = parse(line);
    this.#open.pop();
    return statement;
  }

  /** The end of the opening tag, the body, and the end tag's name. */
  #parseBody(...ends: string[]): Statement[] {
    const body = this.#parseToTag(ends);
    this.next();
    return body;
  }

  #parseToTag(ends: readonly string[]): Statement[] {
    this.skipOperator(':');
    this.expect('block_end');
    return this.#parseUntil(ends);
  }

  #parseIf(line: number): Statement {
    const branches: { test: Expression; body: Statement[] }[] = [];
    for (;;) {
      const test = this.parseTuple({ conditional: false });
      const body = this.#parseToTag(['elif', 'else', 'endif']);
      branches.push({ test, body });
      const { text } = this.next();
      if (text === 'elif') continue;
      return { type: 'if', branches, otherwise: text === 'else' ? this.#parseBody('endif') : [], line };
    }
  }

  #parseFor(line: number): Statement {
    const target = this.#parseTarget({ ends: ['in'] });
    this.expectName('in');
    const over = this.parseTuple({ conditional: false, ends: ['recursive'] });
    const test = this.skipName('if') ? this.parseExpression() : undefined;
    const recursive = this.skipName('recursive');
    this.#loops++;
    const body = this.#parseToTag(['endfor', 'else']);
    this.#loops--;
    const otherwise = this.next().text === 'else' ? this.#parseBody('endfor') : [];
    if (namesOf(target).includes('loop'))
      throw new TemplateError("Can't assign to special loop variable in for-loop target", line);
    return { type: 'for', target, over, recursive, body, otherwise, line, ...(test && { test }) };
  }

  #parseSet(line: number): Statement {
    const target = this.#parseTarget({ namespace: true });
    if (this.skipOperator('=')) return { type: 'set', target, value: this.parseTuple(), line };
    const filter = this.parseFilters(undefined);
    return { type: 'set_block', target, body: this.#parseBody('endset'), line, ...(filter && { filter }) };
  }

  #parseMacro(): MacroBody {
    const name = this.#parseName();
    const parameters = this.#parseSignature();
    return this.#parseMacroBody(name, parameters, 'endmacro');
  }

  #parseCallBlock(line: number): Statement {
    const parameters = this.isOperator('(') ? this.#parseSignature() : [];
    const call = this.parseExpression();
    if (call.type !== 'call') throw new TemplateError('expected call', line);
    return { type: 'call_block', call, caller: this.#parseMacroBody(undefined, parameters, 'endcall'), line };
  }

  #parseMacroBody(name: string | undefined, parameters: readonly Parameter[], end: string): MacroBody {
    const uses = new Set<string>();
    this.reading.push(uses);
    const body = this.#outsideLoops(() => this.#parseBody(end));
    this.reading.pop();
    return { name, parameters, body, uses };
  }

  #parseSignature(): Parameter[] {
    this.expectOperator('(');
    const parameters: Parameter[] = [];
    while (!this.isOperator(')')) {
      if (parameters.length > 0) this.expectOperator(',');
      const { line } = this;
      const name = this.#parseName();
      if (this.skipOperator('=')) parameters.push({ name, fallback: this.parseExpression() });
      else if (parameters.at(-1)?.fallback !== undefined)
        throw new TemplateError('non-default argument follows default argument', line);
      else parameters.push({ name });
    }
    this.expectOperator(')');
    return parameters;
  }

  #parsePrint(line: number): Statement {
    const items: Expression[] = [];
    while (this.current.type !== 'block_end') {
      if (items.length > 0) this.expectOperator(',');
      items.push(this.parseExpression());
    }
    return { type: 'output', value: { type: 'concat', items, line }, line };
  }

  #parseWith(line: number): Statement {
    const bindings: [Target, Expression][] = [];
    while (this.current.type !== 'block_end') {
      if (bindings.length > 0) this.expectOperator(',');
      const target = this.#parseTarget({});
      this.expectOperator('=');
      bindings.push([target, this.parseExpression()]);
    }
    return { type: 'with', bindings, body: this.#parseBody('endwith'), line };
  }

  #parseBlock(line: number): Statement {
    const name = this.expect('name').text;
    const scoped = this.skipName('scoped');
    this.skipName('required');
    const body = this.#outsideLoops(() => this.#parseBody('endblock'));
    this.skipName(name);
    return { type: 'block', scoped, body, line };
  }

  #parseJump(type: 'break' | 'continue', line: number): Statement {
    if (this.#loops === 0) throw new TemplateError(`'${type}' outside loop`, line);
    return { type, line };
  }

  /** An unsupported tag is an error only when it is executed; a template may contain it. */
  #parseUnsupported(tag: string, line: number): Statement {
    while (this.current.type !== 'block_end' && this.current.type !== 'end') this.next();
    if (tag === 'autoescape') this.#parseBody('endautoescape');
    return { type: 'unsupported', tag, line };
  }

  #outsideLoops<T>(parse: () => T): T {
    const loops = this.#loops;
    this.#loops = 0;
    const result = parse();
    this.#loops = loops;
    return result;
  }

  /** Names separated by commas, possibly in brackets; with `namespace`, also `ns.attribute`. */
  #parseTarget({ ends = [], namespace = false }: { ends?: string[]; namespace?: boolean }): Target {
    const { line } = this;
    const items: Target[] = [];
    let isTuple = false;
    for (;;) {
      if (items.length > 0) this.expectOperator(',');
      if (this.current.type !== 'name' && !this.isOperator('(') ? true : this.isName(...ends)) break;
      items.push(this.#parseSingleTarget(namespace));
      if (!this.isOperator(',')) break;
      isTuple = true;
    }
    const [only] = items;
    if (only === undefined) throw this.unexpected('a name to assign to');
    return isTuple ? { type: 'targets', items, line } : only;
  }

  #parseSingleTarget(namespace: boolean): Target {
    const { line } = this;
    if (this.skipOperator('(')) {
      const inner = this.#parseTarget({ namespace });
      this.expectOperator(')');
      return inner;
    }
    const name = this.#parseName();
    if (!namespace || !this.skipOperator('.')) return { type: 'name', name, line };
    for (const names of this.reading) names.add(name);
    return { type: 'namespace', name, attribute: this.expect('name').text, line };
  }

  #parseName(): string {
    const { text, line } = this.expect('name');
    if (constants.has(text)) throw new TemplateError(`can't assign to '${text}'`, line);
    return text;
  }
}

function namesOf(target: Target): string[] {
  return target.type === 'targets' ? target.items.flatMap(namesOf) : [target.name];
}
