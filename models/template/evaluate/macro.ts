/** Macros and the `caller` of a call block: functions whose body is template text. */
import { refuse } from '../errors.ts';
import type { MacroBody, Statement } from '../nodes.ts';
import { Dict, type Keywords, PyObject, Tuple, Undefined, type Value, none } from '../values.ts';
import { evaluate } from './expressions.ts';
import { type Frame, Output, inner } from './scope.ts';

/** Executes statements: this is `execute` of statements.ts. That file creates macros, so it cannot be imported here. */
export type Execute = (statements: readonly Statement[], frame: Frame, output: Output) => unknown;

export class Macro extends PyObject {
  readonly typeName = 'Macro';
  readonly #macro: MacroBody;
  /** The scope in which it was defined: it sees those variables, and not those of its caller. */
  readonly #home: Frame;

  readonly #execute: Execute;

  constructor(macro: MacroBody, home: Frame, execute: Execute) {
    super();
    this.#execute = execute;
    this.#macro = macro;
    this.#home = home;
  }

  override call(args: readonly Value[], keywords: Keywords): Value {
    const frame = inner(this.#home);
    const { rendering } = frame;
    const calledFrom = rendering.line;
    this.#bind(frame, args, keywords);
    const output = new Output();
    this.#execute(this.#macro.body, frame, output);
    rendering.line = calledFrom;
    return output.text;
  }

  override attribute(name: string): Value | undefined {
    if (name === 'name') return this.#macro.name ?? none;
    if (name === 'arguments') return new Tuple(this.#macro.parameters.map((parameter) => parameter.name));
    if (name === 'caller') return this.#uses('caller');
    if (name === 'catch_kwargs') return this.#uses('kwargs');
    return name === 'catch_varargs' ? this.#uses('varargs') : undefined;
  }

  override repr(): string {
    return `<Macro ${this.#macro.name === undefined ? 'anonymous' : `'${this.#macro.name}'`}>`;
  }

  #bind(frame: Frame, args: readonly Value[], keywords: Keywords): void {
    const { parameters } = this.#macro;
    const left = new Map(keywords);
    for (const [i, { name, fallback }] of parameters.entries()) {
      const given = args[i] ?? left.get(name);
      if (i >= args.length) left.delete(name);
      if (given !== undefined) frame.scope.set(name, given);
      else if (fallback !== undefined) frame.scope.set(name, evaluate(fallback, frame));
      else frame.scope.set(name, new Undefined(`parameter '${name}' was not provided`));
    }
    this.#bindSpecial(frame, args, left);
  }

  #bindSpecial(frame: Frame, args: readonly Value[], left: Map<string, Value>): void {
    const label = this.#macro.name === undefined ? 'None' : `'${this.#macro.name}'`;
    if (this.#uses('caller')) {
      frame.scope.set('caller', left.get('caller') ?? new Undefined('No caller defined'));
      left.delete('caller');
    }
    const [unknown] = left.keys();
    if (this.#uses('kwargs')) frame.scope.set('kwargs', new Dict(left));
    else if (unknown !== undefined) refuse(`macro ${label} takes no keyword argument '${unknown}'`);
    const extra = args.slice(this.#macro.parameters.length);
    if (this.#uses('varargs')) frame.scope.set('varargs', new Tuple(extra));
    else if (extra.length > 0)
      refuse(`macro ${label} takes not more than ${this.#macro.parameters.length} argument(s)`);
  }

  #uses(special: string): boolean {
    return this.#macro.uses.has(special) && !this.#macro.parameters.some((parameter) => parameter.name === special);
  }
}
