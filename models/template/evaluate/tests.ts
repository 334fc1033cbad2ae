/** The table of tests: what may follow `is`. */
import { filters } from '../filters.ts';
import { iteratorOf, lengthIfAny } from '../iterate.ts';
import { isLower, isUpper } from '../methods/text-methods.ts';
import { binary, contains, equal, ordered, same } from '../operators.ts';
import { str } from '../print.ts';
import { type Bound, bind } from '../signature.ts';
import {
  Dict,
  DictView,
  type Keywords,
  Lazy,
  Markup,
  PyObject,
  Undefined,
  type Value,
  hashKey,
  numberOf,
  textOf,
  none,
} from '../values.ts';
import { Loop } from './loop.ts';

export type Test = (value: Value, args: readonly Value[], keywords: Keywords) => boolean;

function test(parameters: readonly string[], body: (value: Value, bound: Bound) => boolean): Test {
  return (value, args, keywords) => body(value, bind('test', parameters, args, keywords));
}

const equalTest = test(['other'], (value, [other = none]) => equal(value, other));
const differentTest = test(['other'], (value, [other = none]) => !equal(value, other));
const greater = test(['other'], (value, [other = none]) => ordered('>', value, other));
const less = test(['other'], (value, [other = none]) => ordered('<', value, other));
const greaterOrEqual = test(['other'], (value, [other = none]) => ordered('>=', value, other));
const lessOrEqual = test(['other'], (value, [other = none]) => ordered('<=', value, other));

export const tests: ReadonlyMap<string, Test> = new Map(
  Object.entries({
    defined: test([], (value) => !(value instanceof Undefined)),
    undefined: test([], (value) => value instanceof Undefined),
    none: test([], (value) => value === none),
    boolean: test([], (value) => typeof value === 'boolean'),
    true: test([], (value) => value === true),
    false: test([], (value) => value === false),
    integer: test([], (value) => typeof value === 'bigint'),
    float: test([], (value) => typeof value === 'number'),
    number: test([], (value) => numberOf(value) !== undefined),
    string: test([], (value) => textOf(value) !== undefined),
    mapping: test([], (value) => value instanceof Dict),
    iterable: test([], (value) => iteratorOf(value) !== undefined),
    sequence: test(
      [],
      (value) =>
        lengthIfAny(value) !== undefined &&
        !(value instanceof DictView || value instanceof Loop || value instanceof Lazy),
    ),
    callable: test([], (value) => value instanceof PyObject && value.call !== undefined),
    escaped: test([], (value) => value instanceof Markup),
    lower: test([], (value) => isLower(str(value))),
    upper: test([], (value) => isUpper(str(value))),
    odd: test([], (value) => equal(binary('%', value, 2n), 1n)),
    even: test([], (value) => equal(binary('%', value, 2n), 0n)),
    divisibleby: test(['num'], (value, [number = none]) => equal(binary('%', value, number), 0n)),
    sameas: test(['other'], (value, [other = none]) => same(value, other)),
    in: test(['seq'], (value, [container = none]) => contains(container, value)),
    filter: test([], (value) => hashKey(value) !== '' && filters.has(str(value))),
    test: test([], (value) => hashKey(value) !== '' && tests.has(str(value))),
    eq: equalTest,
    equalto: equalTest,
    '==': equalTest,
    ne: differentTest,
    '!=': differentTest,
    gt: greater,
    greaterthan: greater,
    '>': greater,
    lt: less,
    lessthan: less,
    '<': less,
    ge: greaterOrEqual,
    '>=': greaterOrEqual,
    le: lessOrEqual,
    '<=': lessOrEqual,
  }),
);
