/** The special variable `loop`. It reads one item ahead only on demand. */
import { spend } from '../budget.ts';
import { refuse } from '../errors.ts';
import { equal } from '../operators.ts';
import { lengthIfAny } from '../iterate.ts';
import { Native, PyObject, Tuple, Undefined, type Value } from '../values.ts';

/** Renders the loop's body over other items: `loop(children)` in a recursive loop. */
export type Recurse = (items: Value, depth: number) => Value;

export class Loop extends PyObject {
  readonly typeName = 'LoopContext';
  #iterator: Iterator<Value>;
  readonly #depth: number;
  readonly #recurse: Recurse | undefined;
  #length: number | undefined;
  #index = -1;
  #ahead: IteratorResult<Value> | undefined;
  #current: Value | undefined;
  #before: Value | undefined;
  #changed: Tuple | undefined;

  constructor(items: Value, iterator: Iterator<Value>, filtered: boolean, depth: number, recurse: Recurse | undefined) {
    super();
    this.#iterator = iterator;
    this.#length = filtered ? undefined : lengthIfAny(items);
    this.#depth = depth;
    this.#recurse = recurse;
  }

  /** Advances to the next item; undefined at the end. */
  advance(): Value | undefined {
    spend(1);
    const next = this.#ahead ?? this.#iterator.next();
    this.#ahead = undefined;
    if (next.done === true) return undefined;
    this.#index++;
    this.#before = this.#current;
    this.#current = next.value;
    return next.value;
  }

  override length(): number {
    if (this.#length === undefined) {
      const rest: Value[] = [];
      for (let next = this.#iterator.next(); next.done !== true; next = this.#iterator.next()) {
        spend(1);
        rest.push(next.value);
      }
      this.#iterator = rest[Symbol.iterator]();
      this.#length = this.#index + 1 + rest.length + (this.#ahead !== undefined && this.#ahead.done !== true ? 1 : 0);
    }
    return this.#length;
  }

  override attribute(name: string): Value | undefined {
    switch (name) {
      case 'index':
        return BigInt(this.#index + 1);
      case 'index0':
        return BigInt(this.#index);
      case 'revindex':
        return BigInt(this.length() - this.#index);
      case 'revindex0':
        return BigInt(this.length() - this.#index - 1);
      case 'length':
        return BigInt(this.length());
      case 'first':
        return this.#index === 0;
      case 'last':
        return this.#peek() === undefined;
      case 'depth':
        return BigInt(this.#depth + 1);
      case 'depth0':
        return BigInt(this.#depth);
      case 'previtem':
        return this.#before ?? new Undefined('there is no previous item');
      case 'nextitem':
        return this.#peek() ?? new Undefined('there is no next item');
      case 'cycle':
        return new Native(
          'cycle',
          (items) => items[this.#index % items.length] ?? refuse('no items for cycling given'),
        );
      case 'changed':
        return new Native('changed', (values) => this.#hasChanged(new Tuple(values)));
      default:
        return undefined;
    }
  }

  override call(args: readonly Value[]): Value {
    if (this.#recurse === undefined)
      return refuse("The loop must have the 'recursive' marker to be called recursively.");
    if (args.length !== 1) return refuse(`loop() takes 1 argument but ${args.length} were given`);
    return this.#recurse(args[0] as Value, this.#depth + 1);
  }

  override repr(): string {
    return `<LoopContext ${this.#index + 1}/${this.length()}>`;
  }

  #peek(): Value | undefined {
    this.#ahead ??= this.#iterator.next();
    return this.#ahead.done === true ? undefined : this.#ahead.value;
  }

  #hasChanged(values: Tuple): boolean {
    const changed = this.#changed === undefined || !equal(this.#changed, values);
    if (changed) this.#changed = values;
    return changed;
  }
}
