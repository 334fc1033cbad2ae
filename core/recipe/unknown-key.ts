/** Errors and hints for keys that are not in the schema. */
import { nearest } from '../nearest.ts';
import type { RecipeIssue } from './issues.ts';
import { type RecipeKey, recipeKey, recipeKeys, recipeSections, siblings } from './keys.ts';
import { type TrlKey, trlKey } from './trl.ts';
import { FOREIGN_NAMES, MOVED_KEYS, VERL_WRAPPER } from './verl.ts';

/** An issue for `name` under `sectionPath` ('' = the top), with the nearest sibling or the right place. */
export function unknownKey(sectionPath: string, name: string): RecipeIssue {
  const path = sectionPath === '' ? name : `${sectionPath}.${name}`;
  const base = { path, message: `unknown key "${name}"` };
  const around = keyAround(sectionPath);
  if (around !== undefined) return { ...base, hint: around.doc };
  if (name === VERL_WRAPPER) return { ...base, hint: WRAPPER_HINT };
  const moved = Object.hasOwn(MOVED_KEYS, path) ? MOVED_KEYS[path] : undefined;
  if (moved !== undefined) return { ...base, nearest: moved, hint: `verl's ${path} is ${moved} here` };
  if (FOREIGN_NAMES.has(name)) return { ...base, hint: `a verl key that has no effect in petrel: remove ${path}` };
  const trl = trlKey(name);
  if (trl !== undefined) return { ...base, ...trlHint(name, trl) };
  if (path === 'fleet.workers') return { ...base, nearest: 'fleet.pools', hint: WORKERS_HINT };
  const elsewhere = exactElsewhere(name);
  if (elsewhere !== undefined) return { ...base, nearest: elsewhere, hint: belongs(elsewhere) };
  const sibling = nearest(name, siblings(sectionPath));
  if (sibling !== undefined) return { ...base, nearest: sectionPath === '' ? sibling : `${sectionPath}.${sibling}` };
  const anywhere = nearElsewhere(name);
  return anywhere === undefined
    ? base
    : { ...base, nearest: anywhere, hint: `did you mean ${anywhere}? It ${belongs(anywhere)}` };
}

function trlHint(name: string, { petrel, note }: TrlKey): Pick<RecipeIssue, 'nearest' | 'hint'> {
  if (petrel === undefined) return { hint: `TRL's ${name} has no key here: ${note}` };
  return { nearest: petrel, hint: `TRL's ${name} is ${petrel} here${note === undefined ? '' : `: ${note}`}` };
}

const WRAPPER_HINT =
  'petrel has no actor_rollout_ref wrapper: move model, actor, rollout and ref to the top (actor.optim.lr, rollout.n …); petrel recipe import does this for a script or YAML of verl';

const WORKERS_HINT = 'workers belong to a pool: fleet.pools.local={roles: [trainer, rollout, reward], workers: 2}';

/** The key whose value contains this place, if any: `fleet.pools` for `fleet.pools.local`. */
function keyAround(path: string): RecipeKey | undefined {
  const names = path.split('.');
  return names.map((_, index) => recipeKey(names.slice(0, index + 1).join('.'))).find((entry) => entry !== undefined);
}

function lastName(path: string): string {
  return path.slice(path.lastIndexOf('.') + 1);
}

function allPaths(): string[] {
  return [...recipeKeys, ...recipeSections].map((entry) => entry.path);
}

function exactElsewhere(name: string): string | undefined {
  return allPaths().find((path) => lastName(path) === name);
}

function nearElsewhere(name: string): string | undefined {
  const paths = allPaths();
  const near = nearest(name, paths.map(lastName));
  return near === undefined ? undefined : paths.find((path) => lastName(path) === near);
}

function belongs(path: string): string {
  const dot = path.lastIndexOf('.');
  return dot < 0 ? 'belongs at the top' : `belongs under ${path.slice(0, dot)}`;
}
