/** Evaluates expressions. */
import { getAttribute, getItem, slice } from '../attributes.ts';
import { spend } from '../budget.ts';
import { spendOn } from '../cost.ts';
import { refuse } from '../errors.ts';
import { filters } from '../filters.ts';
import type { Runtime } from '../filters/filter.ts';
import { toArray } from '../iterate.ts';
import type { Arguments, CompareOperator, Expression } from '../nodes.ts';
import { binary, contains, equal, negate, ordered } from '../operators.ts';
import { str } from '../print.ts';
import { tests } from './tests.ts';
import {
  Dict,
  type Keywords,
  PyObject,
  Tuple,
  Undefined,
  type Value,
  textOf,
  truth,
  typeName,
  none,
} from '../values.ts';
import type { Frame } from './scope.ts';

export function evaluate(node: Expression, frame: Frame): Value {
  frame.rendering.line = node.line;
  spend(1);
  switch (node.type) {
    case 'constant':
      return node.value;
    case 'name':
      return frame.scope.get(node.name);
    case 'list':
      return node.items.map((item) => evaluate(item, frame));
    case 'tuple':
      return new Tuple(node.items.map((item) => evaluate(item, frame)));
    case 'concat':
      return charged(node.items.map((item) => str(evaluate(item, frame))).join(''));
    case 'dict':
      return new Dict(node.pairs.map(([key, value]) => [evaluate(key, frame), evaluate(value, frame)] as const));
    case 'attribute':
      return getAttribute(charged(evaluate(node.object, frame)), node.name);
    case 'item':
      return item(node, frame);
    case 'slice':
      return refuse('a slice can only stand alone between square brackets');
    case 'call':
      return callNode(node, frame, new Map());
    case 'filter':
      return applyFilter(
        node,
        node.input === undefined ? refuse('a filter needs a value') : evaluate(node.input, frame),
        frame,
      );
    case 'test': {
      const input = evaluate(node.input, frame);
      return runtime.callTest(node.name, input, ...evaluateArguments(node.args, frame));
    }
    case 'not':
      return !truth(evaluate(node.operand, frame));
    case 'sign':
      return negate(evaluate(node.operand, frame), node.sign);
    case 'binary':
      return binary(node.operator, evaluate(node.left, frame), evaluate(node.right, frame));
    case 'and':
    case 'or': {
      const left = evaluate(node.left, frame);
      return truth(left) === (node.type === 'or') ? left : evaluate(node.right, frame);
    }
    case 'compare':
      return compareChain(node, frame);
    case 'conditional':
      if (truth(evaluate(node.test, frame))) return evaluate(node.then, frame);
      return node.otherwise === undefined
        ? new Undefined('the inline if-expression evaluated to false and no else section was defined.')
        : evaluate(node.otherwise, frame);
  }
}

/** Charges for values that are about to be read, or were just created, as a whole. */
function charged(value: Value): Value {
  spendOn(value);
  return value;
}

function item(node: Expression & { type: 'item' }, frame: Frame): Value {
  const object = evaluate(node.object, frame);
  if (textOf(object) !== undefined) spendOn(object); // cut into code points
  const { key } = node;
  if (key.type !== 'slice') return getItem(object, evaluate(key, frame));
  const [start = none, stop = none, step = none] = [key.start, key.stop, key.step].map((part) =>
    part === undefined ? none : evaluate(part, frame),
  );
  return slice(charged(object), start, stop, step);
}

/** `more`: keyword arguments in addition to the written ones, such as the caller of a call block. */
export function callNode(node: Expression & { type: 'call' }, frame: Frame, more: Keywords): Value {
  const callee = evaluate(node.callee, frame);
  const [args, keywords] = evaluateArguments(node.args, frame);
  frame.rendering.line = node.line;
  if (!(callee instanceof PyObject) || callee.call === undefined)
    return refuse(`'${typeName(callee)}' object is not callable`);
  args.forEach(spendOn);
  return charged(callee.call(args, more.size === 0 ? keywords : new Map([...keywords, ...more])));
}

export function applyFilter(node: Expression & { type: 'filter' }, input: Value, frame: Frame): Value {
  return runtime.callFilter(node.name, input, ...evaluateArguments(node.args, frame));
}

function evaluateArguments(args: Arguments, frame: Frame): [Value[], Keywords] {
  const positional = args.positional.map((argument) => evaluate(argument, frame));
  const keywords = new Map(args.keywords.map(([name, value]) => [name, evaluate(value, frame)] as const));
  if (args.spread !== undefined) positional.push(...toArray(evaluate(args.spread, frame)));
  if (args.spreadKeywords !== undefined) {
    const extra = evaluate(args.spreadKeywords, frame);
    if (!(extra instanceof Dict)) return refuse('argument after ** must be a mapping');
    for (const [key, value] of extra.entries()) keywords.set(textOf(key) ?? refuse('keywords must be strings'), value);
  }
  return [positional, keywords];
}

function compareChain(node: Expression & { type: 'compare' }, frame: Frame): Value {
  let left = evaluate(node.first, frame);
  for (const [operator, expression] of node.rest) {
    const right = charged(evaluate(expression, frame));
    if (!holds(operator, left, right)) return false;
    left = right;
  }
  return true;
}

function holds(operator: CompareOperator, left: Value, right: Value): boolean {
  switch (operator) {
    case '==':
      return equal(left, right);
    case '!=':
      return !equal(left, right);
    case 'in':
      return contains(right, left);
    case 'not in':
      return !contains(right, left);
    default:
      return ordered(operator, left, right);
  }
}

const runtime: Runtime = {
  callFilter(name, value, args, keywords) {
    const filter = filters.get(name) ?? refuse(`No filter named '${name}'.`);
    return charged(filter(charged(value), args, keywords, runtime));
  },
  callTest(name, value, args, keywords) {
    const test = tests.get(name) ?? refuse(`No test named '${name}'.`);
    spendOn(value);
    return test(value, args, keywords);
  },
};
