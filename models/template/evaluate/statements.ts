/** Executes statements: they write text to an output and variables to a scope. */
import { spend } from '../budget.ts';
import { refuse } from '../errors.ts';
import { Namespace } from '../globals.ts';
import { iterate, unpack } from '../iterate.ts';
import type { Expression, Statement, Target } from '../nodes.ts';
import { str } from '../print.ts';
import { type Value, truth } from '../values.ts';
import { applyFilter, callNode, evaluate } from './expressions.ts';
import { Loop, type Recurse } from './loop.ts';
import { Macro } from './macro.ts';
import { type Frame, Output, Scope, inner } from './scope.ts';

type Jump = 'break' | 'continue' | undefined;

/** Runs statements in order. Returns a jump (`break`, `continue`) for the enclosing loop. */
export function execute(statements: readonly Statement[], frame: Frame, output: Output): Jump {
  for (const statement of statements) {
    const jump = executeOne(statement, frame, output);
    if (jump !== undefined) return jump;
  }
  return undefined;
}

function executeOne(node: Statement, frame: Frame, output: Output): Jump {
  frame.rendering.line = node.line;
  spend(1);
  switch (node.type) {
    case 'text':
      output.write(node.text);
      return undefined;
    case 'output':
      output.write(str(evaluate(node.value, frame)));
      return undefined;
    case 'if': {
      const branch = node.branches.find(({ test }) => truth(evaluate(test, frame)));
      return execute(branch?.body ?? node.otherwise, frame, output);
    }
    case 'for':
      return executeFor(node, frame, output);
    case 'set':
      checkNamespaces(node.target, frame);
      assign(node.target, evaluate(node.value, frame), frame);
      return undefined;
    case 'set_block': {
      const block = inner(frame);
      const captured = new Output();
      const jump = execute(node.body, block, captured);
      if (jump === undefined) assign(node.target, filtered(node.filter, captured.text, block), frame);
      return jump;
    }
    case 'filter_block': {
      const block = inner(frame);
      const captured = new Output();
      const jump = execute(node.body, block, captured);
      if (jump === undefined) output.write(str(filtered(node.filter, captured.text, block)));
      return jump;
    }
    case 'macro':
      frame.scope.set(node.macro.name ?? '', new Macro(node.macro, frame, execute));
      return undefined;
    case 'call_block':
      output.write(str(callNode(node.call, frame, new Map([['caller', new Macro(node.caller, frame, execute)]]))));
      return undefined;
    case 'with': {
      const block = inner(frame);
      const values = node.bindings.map(([target, value]) => [target, evaluate(value, frame)] as const);
      for (const [target, value] of values) assign(target, value, block);
      return execute(node.body, block, output);
    }
    case 'block':
      execute(
        node.body,
        { scope: new Scope(node.scoped ? frame.scope : frame.scope.root), rendering: frame.rendering },
        output,
      );
      return undefined;
    case 'generation': {
      const captured = new Output();
      execute(node.body, inner(frame), captured);
      const start = frame.rendering.output.length;
      frame.rendering.spans.push([start, start + captured.length]);
      output.write(captured.text);
      return undefined;
    }
    case 'break':
    case 'continue':
      return node.type;
    case 'unsupported':
      return refuse(`the tag '${node.tag}' cannot be used in a chat template`);
  }
}

type For = Statement & { type: 'for' };

function executeFor(node: For, frame: Frame, output: Output): Jump {
  const items = evaluate(node.over, frame);
  if (!node.recursive) return runLoop(node, items, 0, undefined, frame, output);
  const recurse: Recurse = (children, depth) => {
    const captured = new Output();
    runLoop(node, children, depth, recurse, frame, captured);
    return captured.text;
  };
  output.write(str(recurse(items, 0)));
  return undefined;
}

/**
 * Every iteration has its own variables. `else` runs when no iteration ran to its end. This is jinja2's rule: `break`
 * counts as not ending.
 */
function runLoop(
  node: For,
  items: Value,
  depth: number,
  recurse: Recurse | undefined,
  frame: Frame,
  output: Output,
): Jump {
  const iterator = node.test === undefined ? iterate(items) : selectItems(node, node.test, items, frame);
  const loop = new Loop(items, iterator, node.test !== undefined, depth, recurse);
  let ran = false;
  for (let item = loop.advance(); item !== undefined; item = loop.advance()) {
    const body = inner(frame);
    body.scope.set('loop', loop);
    assign(node.target, item, body);
    const jump = execute(node.body, body, output);
    if (jump === 'break') break;
    ran ||= jump === undefined;
  }
  return ran ? undefined : execute(node.otherwise, inner(frame), output);
}

function* selectItems(node: For, test: Expression, items: Value, frame: Frame): Generator<Value> {
  const iterator = iterate(items);
  for (let next = iterator.next(); next.done !== true; next = iterator.next()) {
    const scope = inner(frame);
    assign(node.target, next.value, scope);
    if (truth(evaluate(test, scope))) yield next.value;
  }
}

function filtered(filter: Expression | undefined, text: string, frame: Frame): Value {
  if (filter?.type !== 'filter') return text;
  return applyFilter(filter, filter.input === undefined ? text : filtered(filter.input, text, frame), frame);
}

function assign(target: Target, value: Value, frame: Frame): void {
  if (target.type === 'name') frame.scope.set(target.name, value);
  else if (target.type === 'namespace') namespaceOf(target.name, frame).set(target.attribute, value);
  else {
    const values = unpack(value, target.items.length);
    for (const [i, item] of target.items.entries()) assign(item, values[i] as Value, frame);
  }
}

function checkNamespaces(target: Target, frame: Frame): void {
  if (target.type === 'namespace') namespaceOf(target.name, frame);
  else if (target.type === 'targets') for (const item of target.items) checkNamespaces(item, frame);
}

function namespaceOf(name: string, frame: Frame): Namespace {
  const namespace = frame.scope.get(name);
  return namespace instanceof Namespace ? namespace : refuse('cannot assign attribute on non-namespace object');
}
