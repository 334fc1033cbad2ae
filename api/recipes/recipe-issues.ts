/** Finds the layer, and the place in it, of an issue of a recipe. */
import {
  InvalidRecipeError,
  issueHint,
  issueLine,
  type Override,
  type RecipeIssue,
  type Tree,
} from '../../core/recipe/index.ts';
import { type RecipeSource, showPosition } from './recipe-source.ts';

export type RecipeLayer = { readonly apply: (tree: Tree) => Tree } & (
  | { readonly type: 'file'; readonly source: RecipeSource }
  | { readonly type: 'override'; readonly override: Override }
);

interface LocatedIssue {
  readonly issue: RecipeIssue;
  /** `recipe.yaml:3:7` or `override rollout.n=x`. */
  readonly where: string;
  /** Everything to print: place, message, the line with a caret, the nearest key. */
  readonly text: string;
  readonly rank: number;
}

/** One error that tells of every issue where it is. */
export function recipeErrors(issues: readonly RecipeIssue[], layers: readonly RecipeLayer[]): InvalidRecipeError {
  const located = issues.map((issue) => locateIssue(issue, layers)).sort((a, b) => a.rank - b.rank);
  return new InvalidRecipeError(
    located.map(({ issue, text }) => ({ ...issue, path: '', message: text })),
    located[0]?.where,
  );
}

function locateIssue(issue: RecipeIssue, layers: readonly RecipeLayer[]): LocatedIssue {
  const { where, caret, rank } = place(issue, layers);
  const hint = where.startsWith('override name=') ? issue.hint?.replace(/^name: /, '--name ') : issueHint(issue);
  const lines = [`${where}: ${issueLine(issue)}`, caret, hint === undefined ? undefined : `  ${hint}`];
  return { issue, where, text: lines.filter((line) => line !== undefined).join('\n'), rank };
}

interface Place {
  readonly where: string;
  readonly caret?: string;
  /** Orders the issues as they stand in the files, overrides last. */
  readonly rank: number;
}

const LAYER_RANK = 1e9;
const LINE_RANK = 1e4;

/** The topmost layer that has the path; for a missing key, the nearest section around it. */
function place(issue: RecipeIssue, layers: readonly RecipeLayer[]): Place {
  const path = issue.path === '' ? [] : issue.path.split('.');
  for (let length = path.length; length >= 0; length -= 1) {
    const whole = length === path.length;
    const found = layers.map((layer, index) => placeIn(layer, index * LAYER_RANK, path.slice(0, length), issue, whole));
    const topmost = found.findLast((one) => one !== undefined);
    if (topmost !== undefined) return topmost;
  }
  return { where: 'recipe', rank: 0 };
}

function placeIn(
  layer: RecipeLayer,
  layerRank: number,
  path: readonly string[],
  issue: RecipeIssue,
  whole: boolean,
): Place | undefined {
  if (layer.type === 'override') return whole ? placeInOverride(layer.override, layerRank, path, issue) : undefined;
  const named = issue.message.startsWith('unknown key') || !whole;
  const position = layer.source.position(path, named ? 'name' : 'value');
  if (position === undefined) return undefined;
  const where = showPosition(layer.source.file, position);
  const rank = layerRank + position.line * LINE_RANK + position.col;
  return path.length === 0 && !whole
    ? { where, rank }
    : { where, rank, caret: layer.source.caret(position, issue.secret) };
}

function placeInOverride(
  override: Override,
  rank: number,
  path: readonly string[],
  issue: RecipeIssue,
): Place | undefined {
  const own = override.path.join('.');
  const wanted = path.join('.');
  const concerns = wanted === own || wanted.startsWith(`${own}.`) || own.startsWith(`${wanted}.`);
  if (override.type === 'remove' || wanted === '' || !concerns) return undefined;
  return { where: `override ${issue.secret === true ? `${own}=***` : override.source}`, rank };
}
