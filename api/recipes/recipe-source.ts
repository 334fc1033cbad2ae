/** A recipe's text with the position of everything in it. */
import {
  isMap,
  isPair,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  parseDocument,
  type Pair,
  type ParsedNode,
} from 'yaml';
import { InvalidInputError } from '../../core/errors.ts';

export interface Position {
  readonly line: number;
  readonly col: number;
}

export interface RecipeSource {
  /** The file as it is shown: relative to the working folder. */
  readonly file: string;
  readonly value: unknown;
  /** The position of a key (`name`) or of its value; undefined when it is not in this text. */
  position(path: readonly string[], part: 'name' | 'value'): Position | undefined;
  /** The line with a caret under the position. `masked`: the rest of the line from there is not shown. */
  caret(position: Position, masked?: boolean): string;
}

/** Throws InvalidInputError with file:line:col for what is no YAML (or JSON, which is YAML too). */
export function parseRecipeSource(text: string, file: string): RecipeSource {
  const counter = new LineCounter();
  const document = parseDocument(text, { lineCounter: counter, prettyErrors: false, version: '1.2' });
  const lines = text.split(/\r?\n/);
  const caret = (position: Position, masked = false) =>
    caretLines(lines[position.line - 1] ?? '', position.col, masked);
  const [error] = document.errors;
  if (error !== undefined) {
    const position = counter.linePos(error.pos[0]);
    throw new InvalidInputError(`not valid YAML: ${error.message}\n${caret(position)}`, {
      where: showPosition(file, position),
    });
  }
  return {
    file,
    value: document.toJS({ maxAliasCount: 100 }),
    position(path, part) {
      const offset = offsetOf(document.contents, path, part);
      return offset === undefined ? undefined : counter.linePos(offset);
    },
    caret,
  };
}

/** `recipe.yaml:3:7`. */
export function showPosition(file: string, { line, col }: Position): string {
  return `${file}:${line}:${col}`;
}

function caretLines(line: string, col: number, masked: boolean): string {
  const shown = masked ? `${line.slice(0, col - 1)}***` : line;
  return `  ${shown}\n  ${shown.slice(0, col - 1).replace(/[^\t]/g, ' ')}^`;
}

function offsetOf(root: ParsedNode | null, path: readonly string[], part: 'name' | 'value'): number | undefined {
  let node: Node | null = root;
  let name: Node | null = root;
  for (const step of path) {
    const found: { readonly name: Node | null; readonly value: Node | null } | undefined = child(node, step);
    if (found === undefined) return undefined;
    node = found.value;
    name = found.name;
  }
  const wanted = part === 'name' ? name : (node ?? name);
  return wanted?.range?.[0];
}

function child(
  node: Node | null,
  step: string,
): { readonly name: Node | null; readonly value: Node | null } | undefined {
  if (isSeq(node)) {
    const item = node.items[Number(step)] as Node | undefined;
    return item === undefined ? undefined : { name: item, value: item };
  }
  if (!isMap(node)) return undefined;
  const pair = node.items.find(
    (item): item is Pair<Node, Node | null> => isPair(item) && isScalar(item.key) && String(item.key.value) === step,
  );
  return pair === undefined ? undefined : { name: pair.key, value: pair.value };
}
