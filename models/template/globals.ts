/** Names that every template has: range, dict, namespace, cycler, joiner, raise_exception, strftime_now. */
import { OperationError, refuse } from './errors.ts';
import { iterate, toArray, unpack } from './iterate.ts';
import { repr, str } from './print.ts';
import { integerArgument, native } from './signature.ts';
import { Range } from './range.ts';
import { parseClock, strftime } from './strftime.ts';
import { Dict, type Keywords, Native, PyObject, type Value, textOf, none } from './values.ts';

/** The only object whose attributes a template may set. */
export class Namespace extends PyObject {
  readonly typeName = 'Namespace';
  readonly #values = new Map<string, Value>();
  override attribute(name: string): Value | undefined {
    return this.#values.get(name);
  }
  set(name: string, value: Value): void {
    if (name.startsWith('_'))
      refuse(`Chat templates cannot store underscore-prefixed attributes on a namespace, but got ${repr(name)}.`);
    this.#values.set(name, value);
  }
  override repr(): string {
    return `<Namespace ${repr(new Dict(this.#values))}>`;
  }
}

class Cycler extends PyObject {
  readonly typeName = 'Cycler';
  readonly #items: readonly Value[];
  #position = 0;
  constructor(items: readonly Value[]) {
    super();
    this.#items = items.length > 0 ? items : refuse('at least one item has to be provided');
  }
  override attribute(name: string): Value | undefined {
    if (name === 'current') return this.#items[this.#position];
    if (name === 'reset') return native('reset', [], () => this.#move(0));
    if (name !== 'next') return undefined;
    return native('next', [], () => {
      const current = this.#items[this.#position] ?? none;
      this.#move((this.#position + 1) % this.#items.length);
      return current;
    });
  }
  #move(position: number): Value {
    this.#position = position;
    return none;
  }
}

class Joiner extends PyObject {
  readonly typeName = 'Joiner';
  readonly #separator: Value;
  #used = false;
  constructor(separator: Value) {
    super();
    this.#separator = separator;
  }
  override call(): Value {
    const shown = this.#used ? this.#separator : '';
    this.#used = true;
    return shown;
  }
}

/** `dict(...)` and `dict.fromkeys(...)`. */
class DictType extends PyObject {
  readonly typeName = 'type';
  override call(args: readonly Value[], keywords: Keywords): Value {
    return makeDict(args, keywords);
  }
  override attribute(name: string): Value | undefined {
    if (name !== 'fromkeys') return undefined;
    return native(
      'fromkeys',
      ['iterable', 'value?'],
      ([keys = none, value = none]) => new Dict(toArray(keys).map((key) => [key, value] as const)),
    );
  }
}

function makeDict(args: readonly Value[], keywords: Keywords): Dict {
  const [source, ...more] = args;
  if (more.length > 0) return refuse(`dict expected at most 1 argument, got ${args.length}`);
  if (source === undefined) return new Dict(keywords);
  if (source instanceof Dict) return new Dict([...source.entries(), ...keywords]);
  const pairs: (readonly [Value, Value])[] = [];
  const iterator = iterate(source);
  for (let next = iterator.next(); next.done !== true; next = iterator.next()) {
    const [key = none, value = none] = unpack(next.value, 2);
    pairs.push([key, value]);
  }
  return new Dict([...pairs, ...keywords]);
}

function makeNamespace(args: readonly Value[], keywords: Keywords): Namespace {
  const namespace = new Namespace();
  for (const [name, value] of makeDict(args, keywords).entries()) namespace.set(textOf(name) ?? str(name), value);
  return namespace;
}

/** Throws the template's own error with this message. */
class RaisedByTemplate extends OperationError {}

/** `now`: the time `2026-01-02T03:04:05`. Without it, a template that reads the date is refused. */
export function makeGlobals(now: string | undefined): Map<string, Value> {
  return new Map<string, Value>([
    [
      'range',
      native('range', ['start', 'stop?', 'step?'], ([start = none, stop, step]) => {
        const [first, second, by] = [start, stop, step].map((value) =>
          value === undefined ? undefined : BigInt(integerArgument(value, NaN)),
        );
        return second === undefined ? new Range(0n, first ?? 0n, 1n) : new Range(first ?? 0n, second, by ?? 1n);
      }),
    ],
    ['dict', new DictType()],
    ['namespace', new Native('namespace', makeNamespace)],
    ['cycler', new Native('cycler', (items) => new Cycler(items))],
    ['joiner', native('joiner', ['sep?'], ([separator = ', ']) => new Joiner(separator))],
    [
      'raise_exception',
      native('raise_exception', ['message'], ([message = none]) => {
        throw new RaisedByTemplate(str(message));
      }),
    ],
    [
      'strftime_now',
      native('strftime_now', ['format'], ([format = none]) => {
        if (now === undefined) return refuse('the template asks for the date, but no clock was given');
        return strftime(parseClock(now), textOf(format) ?? refuse('strftime() argument 1 must be str'));
      }),
    ],
  ]);
}
