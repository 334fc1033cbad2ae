/** Variables by nested scope, and the state of one rendering. */
import { spendOnText } from '../budget.ts';
import { lengthOf } from '../python-strings.ts';
import { Undefined, type Value } from '../values.ts';

export class Scope {
  readonly #values = new Map<string, Value>();
  readonly #parent: Scope | undefined;
  constructor(parent?: Scope) {
    this.#parent = parent;
  }
  get root(): Scope {
    return this.#parent?.root ?? this;
  }
  set(name: string, value: Value): void {
    this.#values.set(name, value);
  }
  find(name: string): Value | undefined {
    return this.#values.get(name) ?? this.#parent?.find(name);
  }
  get(name: string): Value {
    return this.find(name) ?? new Undefined(`'${name}' is undefined`);
  }
}

/** Receives the rendered text. */
export class Output {
  #text = '';
  #points = 0;
  #counted = 0;
  write(text: string): void {
    spendOnText(text.length);
    this.#text += text;
  }
  get text(): string {
    return this.#text;
  }
  /** Code points written so far. */
  get length(): number {
    this.#points += lengthOf(this.#text.slice(this.#counted));
    this.#counted = this.#text.length;
    return this.#points;
  }
}

/** The state of one rendering: the main output, the spans inside `{% generation %}`, and the line being executed. */
export interface Rendering {
  readonly output: Output;
  readonly spans: [number, number][];
  line: number;
}

/** The context of executed code: its variables and its rendering. */
export interface Frame {
  readonly scope: Scope;
  readonly rendering: Rendering;
}

export function inner(frame: Frame): Frame {
  return { scope: new Scope(frame.scope), rendering: frame.rendering };
}
