/** A recipe's text with the position of everything in it. */
import { isMap, isPair, isScalar, isSeq } from 'yaml';
import type { Node, Pair, ParsedNode } from 'yaml';
import { caretAt, parseYaml } from '../../infra/yaml.ts';
import type { Position } from '../../infra/yaml.ts';

export { showPosition } from '../../infra/yaml.ts';
export type { Position } from '../../infra/yaml.ts';

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
  const { value, contents, positionOf } = parseYaml(text, file);
  return {
    file,
    value,
    position(path, part) {
      const offset = offsetOf(contents, path, part);
      return offset === undefined ? undefined : positionOf(offset);
    },
    caret: (position, masked = false) => caretAt(text, position, masked),
  };
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
