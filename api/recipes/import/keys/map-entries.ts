/**
 * Maps verl's keys to a recipe: applies the table, then petrel's own schema. Nothing is thrown; everything is reported.
 */
import { checkRecipe } from '../../../../core/recipe/parse.ts';
import { nearest } from '../../../../core/nearest.ts';
import { recipeKey, recipeKeys, recipeSections } from '../../../../core/recipe/keys.ts';
import { removeAt, setAt, type Tree } from '../../../../core/recipe/merge.ts';
import { BUILT_TODAY } from '../../../../core/recipe/not-built.ts';
import type { RecipeIssue } from '../../../../core/recipe/issues.ts';
import { runIssues } from '../../../../core/recipe/runnable.ts';
import { findSecrets } from '../../../../core/recipe/secrets.ts';
import { CONVERSIONS, longestSequence, type ValueOf } from './conversions.ts';
import { defaultsThatDiffer, hasOtherDefault } from './defaults.ts';
import { chooseEngines, type EngineChoice, type ImportEngine } from './engine-choice.ts';
import { showValue } from '../../../../core/recipe/show-value.ts';
import type { Entries, Entry } from './entries.ts';
import { findRule } from './find-rule.ts';
import { interpolate } from './interpolate.ts';
import { lossesOf } from './losses.ts';
import { datesOf, plainPath } from './names.ts';
import { withSeveralTurns } from './several-turns.ts';
import { withSections } from './sections.ts';
import type { ImportedKey, ImportResult } from './outcome.ts';
import { REASONS } from './reasons.ts';
import type { Rule } from './rules.ts';
import type { Hole } from '../shell/holes.ts';

export interface ImportOptions {
  readonly kind: 'rl' | 'sft';
  readonly env: ReadonlyMap<string, string>;
  /** The engine that the recipe shall name; absent: the script decides. */
  readonly engine?: ImportEngine | undefined;
  /** Why a part of a text is not known. */
  readonly holesIn?: (text: string) => readonly Hole[];
}

/** An entry under verl's plain path, with its references resolved. */
interface Known {
  readonly entry: Entry;
  readonly path: string;
  /** Dates at which verl used the name; absent for today's names. */
  readonly dates?: string;
  readonly value: unknown;
  /** Why the value is not known. */
  readonly unknown?: string;
}

export function importEntries(entries: Entries, options: ImportOptions): ImportResult {
  const known = resolveAll(withSections(entries.all), options);
  const values = new Map(known.filter((one) => one.unknown === undefined).map((one) => [one.path, one.value]));
  const valueOf: ValueOf = (path) => values.get(path);
  const unknown = new Set(known.filter((one) => one.unknown !== undefined).map(({ path }) => path));
  const engines = chooseEngines(options.engine, valueOf, unknown);
  const referred = new Set(entries.all.flatMap(({ value }) => textsIn(value).flatMap(referencesIn)));
  const ofMethod = known.flatMap((one): ImportedKey[] => {
    const key = mapKey(one, { valueOf, referred, engines });
    return one.entry.isDefault === true && !saysMore(key) ? [] : [key];
  });
  const mapped = withSeveralTurns(ofMethod, valueOf);
  const isGiven = (path: string) =>
    known.some((one) => one.path === path && one.entry.isDefault !== true) ||
    mapped.some((key) => key.petrel === path && 'written' in key);
  const defaults = defaultsThatDiffer(options.kind, engines.divides, isGiven);
  const base: Tree = options.kind === 'sft' ? { kind: 'sft' } : {};
  const written = [
    ...enginesToWrite(engines, options.kind),
    ...defaults.filter((one) => one.isWritten).map((one) => [one.petrel, one.verlDefault] as const),
    ...mapped.flatMap((key) =>
      key.petrel !== undefined && 'written' in key
        ? [...Object.entries(key.also ?? {}), [key.petrel, key.written] as const]
        : [],
    ),
  ];
  const tree = written.reduce<Tree>((result, [path, value]) => setAt(result, path.split('.'), value), base);
  const roomy = withRoom(tree, valueOf, options.kind);
  const checked = check(roomy, mapped);
  return { ...checked, engines, defaults, notes: entries.notes, losses: lossesOf(checked.keys, entries.notes) };
}

/** petrel's defaults are not written. */
function enginesToWrite({ trainer, sampler }: EngineChoice, kind: 'rl' | 'sft'): (readonly [string, unknown])[] {
  if (trainer === 'native') return [];
  return [['trainer.engine', trainer], ...(kind === 'rl' ? [['rollout.name', sampler] as const] : [])];
}

/** Does a default of verl's own configuration change a recipe? Those of today are petrel's, or in defaults.ts. */
function saysMore({ petrel, outcome, ...key }: ImportedKey): boolean {
  if (petrel === undefined || !('written' in key) || !['same', 'moved'].includes(outcome)) return false;
  const known = recipeKey(petrel);
  const isUnset = key.written === null || key.written === -1 || key.written === '';
  return !isUnset && !hasOtherDefault(petrel) && showValue(known?.default) !== showValue(key.written);
}

/** verl has no limit in tokens unless one is set: a forward pass must take at least the longest sequence. */
function withRoom(tree: Tree, valueOf: ValueOf, kind: 'rl' | 'sft'): Tree {
  const path = 'actor.ppo_max_token_len_per_gpu';
  const longest = kind === 'sft' ? valueOf('data.max_length') : longestSequence(valueOf);
  const isSet = path.split('.').reduce<unknown>((at, name) => (at as Tree | undefined)?.[name], tree) !== undefined;
  if (isSet || typeof longest !== 'number' || longest <= Number(recipeKey(path)?.default)) return tree;
  const { trainer } = tree as { readonly trainer?: { readonly ulysses_sequence_parallel_size?: number } };
  const limit = Math.ceil(longest / (trainer?.ulysses_sequence_parallel_size ?? 1));
  return limit <= Number(recipeKey(path)?.default) ? tree : setAt(tree, path.split('.'), limit);
}

function resolveAll(all: readonly Entry[], { kind, env, holesIn = () => [] }: ImportOptions): Known[] {
  const raw = new Map(all.map((entry) => [entry.path, entry.value]));
  return all.map((entry) => {
    const { path, former } = plainPath(entry.path, kind);
    const base = { entry, path, ...(former !== undefined && { dates: datesOf(former) }) };
    const hole = textsIn(entry.value).flatMap((text) => holesIn(text))[0];
    // A name may lose the parts that are not known.
    if (hole !== undefined && path !== 'trainer.experiment_name')
      return {
        ...base,
        value: undefined,
        unknown: `it is or contains ${hole.reason}${hole.line > 0 ? ` (line ${hole.line})` : ''}`,
      };
    const resolved = interpolate(entry.value, entry.path, { valueOf: (target) => raw.get(target), env });
    if (resolved.type === 'unknown') return { ...base, value: undefined, unknown: resolved.why };
    return { ...base, value: resolved.value };
  });
}

function textsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(textsIn) : [];
}

/** `a.b` in `${a.b}`. */
const referencesIn = (text: string): string[] => [...text.matchAll(/\$\{([\w.]+)\}/g)].map((match) => match[1] ?? '');

/** What a key is mapped by, besides its value. */
interface Surroundings {
  readonly valueOf: ValueOf;
  /** verl's keys to which other values refer. */
  readonly referred: ReadonlySet<string>;
  readonly engines: EngineChoice;
}

function mapKey(known: Known, { valueOf, referred, engines }: Surroundings): ImportedKey {
  const { entry, path, value, unknown, dates } = known;
  const rule = findRule(path, engines);
  const { file, line } = entry;
  const base = { verl: entry.path, ...(file !== undefined && { file }), ...(line !== undefined && { line }) };
  if (unknown !== undefined) {
    // The value does not matter where no value has a counterpart.
    if (rule?.none !== undefined && rule.to === undefined) return { ...base, outcome: 'none', reason: rule.none };
    if (rule?.how !== undefined && (rule.to === undefined || rule.write === false))
      return { ...base, ...byRule(rule, null, valueOf, path) };
    return { ...base, outcome: 'unreadable', note: unknown, ...petrelKeyOf(rule, path) };
  }
  if (findSecrets(setAt({}, path.split('.'), value)).length > 0)
    return {
      ...base,
      value: '***',
      outcome: 'refused',
      note: 'it looks like a secret; recipes must not contain any',
      ...petrelKeyOf(rule, path),
    };
  const shown = { ...base, value: typeof value === 'string' ? value.replace(/\0\d+\0/g, '…') : value };
  if (rule !== undefined) return { ...shown, ...byRule(rule, value, valueOf, path) };
  if (isKeyOrInside(path)) {
    const kept = { petrel: path, written: value };
    return dates === undefined
      ? { ...shown, outcome: 'same', ...kept }
      : { ...shown, outcome: 'moved', ...kept, note: dates };
  }
  if (value === null || isEmpty(value)) return { ...shown, outcome: 'met', note: 'an empty value' };
  if (referred.has(entry.path)) return { ...shown, outcome: 'met', note: 'other values refer to it' };
  return { ...shown, outcome: 'unknown', ...hintFor(path) };
}

type Mapped = Omit<ImportedKey, 'verl' | 'value' | 'line'>;

function byRule(rule: Rule, value: unknown, valueOf: ValueOf, path: string): Mapped {
  const { to, how, none, met, write, convert, also } = rule;
  const petrel = to === undefined ? {} : { petrel: to };
  if (met?.some((one) => one === value) === true) {
    const isOwn = to !== undefined && write !== false && convert === undefined && value !== null;
    return { outcome: 'met', ...petrel, ...(isOwn && { written: value }), ...(how !== undefined && { note: how }) };
  }
  if (to === undefined) {
    if (none !== undefined) return { outcome: 'none', reason: none };
    return { outcome: 'differs', note: how ?? '' };
  }
  const converted = convert === undefined ? undefined : CONVERSIONS[convert](value, valueOf, path);
  if (converted?.type === 'none')
    return { outcome: 'none', ...petrel, note: `${how ?? 'not possible'}: ${converted.note}` };
  const note = [how, converted?.note].filter((text) => text !== undefined).join('; ');
  const isSame = note === '' || (how === undefined && converted?.type === 'same');
  const outcome = isSame ? (to === path ? 'same' : 'moved') : 'differs';
  if (write === false || converted?.type === 'left') return { outcome: 'differs', ...petrel, note };
  const written = converted === undefined ? value : converted.value;
  return { outcome, ...petrel, written, ...(also !== undefined && { also }), ...(note !== '' && { note }) };
}

const petrelKeyOf = (rule: Rule | undefined, path: string): { readonly petrel?: string } => {
  const petrel = rule === undefined ? (isKeyOrInside(path) ? path : undefined) : rule.to;
  return petrel === undefined ? {} : { petrel };
};

/** A key, or a place in a key whose value is a mapping: `data.apply_chat_template_kwargs.enable_thinking`. */
function isKeyOrInside(path: string): boolean {
  const names = path.split('.');
  return names.some((_, index) => {
    const key = recipeKey(names.slice(0, index + 1).join('.'));
    return key !== undefined && (index === names.length - 1 || key.type === 'mapping');
  });
}

const isEmpty = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && Object.keys(value).length === 0;

/** Only a name that is close, in the same section. */
function hintFor(path: string): { readonly note?: string } {
  const section = path.slice(0, path.lastIndexOf('.') + 1);
  const near = nearest(
    path,
    recipeKeys.map((key) => key.path).filter((other) => other.startsWith(section)),
  );
  return near === undefined || section === '' ? {} : { note: `is ${near} meant?` };
}

/** Values that petrel's schema refuses are left out; what remains is checked as `petrel plan` does. */
function check(tree: Tree, keys: readonly ImportedKey[]): Pick<ImportResult, 'tree' | 'keys' | 'problems'> {
  let kept = tree;
  const refused = new Map<string, RecipeIssue>();
  for (let round = 0; round < 50; round += 1) {
    const result = checkRecipe(kept);
    if (result.ok) {
      const problems = runIssues(result.recipe);
      return { tree: kept, keys: marked(keys, refused, problems), problems };
    }
    const wrong = result.issues.filter(({ path }) => path !== '' && isSet(kept, path) && !isSection(path));
    if (wrong.length === 0) return { tree: kept, keys: marked(keys, refused, []), problems: result.issues };
    for (const issue of wrong) {
      refused.set(keyPathOf(issue.path), issue);
      kept = removeAt(kept, keyPathOf(issue.path).split('.'));
    }
  }
  return { tree: kept, keys: marked(keys, refused, []), problems: [] };
}

const isSection = (path: string): boolean => recipeSections.some((section) => section.path === path);

/** The key that contains a place in a value: `trainer.logger` for `trainer.logger.1`. */
function keyPathOf(path: string): string {
  const names = path.split('.');
  const length = names.findIndex((_, index) => recipeKey(names.slice(0, index + 1).join('.')) !== undefined) + 1;
  return length === 0 ? path : names.slice(0, length).join('.');
}

function isSet(tree: Tree, path: string): boolean {
  return (
    path
      .split('.')
      .reduce<unknown>((at, name) => (typeof at === 'object' && at !== null ? (at as Tree)[name] : undefined), tree) !==
    undefined
  );
}

function marked(
  keys: readonly ImportedKey[],
  refused: ReadonlyMap<string, RecipeIssue>,
  problems: readonly RecipeIssue[],
): ImportedKey[] {
  return keys.map((key) => {
    if (key.petrel === undefined || !('written' in key)) return key;
    const own = keyPathOf(key.petrel);
    const issue = refused.get(own);
    if (issue !== undefined) {
      const { written: _, ...rest } = key;
      if (key.value === null) return { ...rest, outcome: 'met', note: 'an empty value' };
      return { ...rest, outcome: 'refused', note: issue.message };
    }
    const problem = problems.find(({ path }) => path === own && Object.hasOwn(BUILT_TODAY, path));
    return problem === undefined
      ? key
      : { ...key, outcome: 'later', note: `not built yet; today: ${problem.expected ?? ''}` };
  });
}

/** The reason of a key without a counterpart, for people. */
export function importReasonText(key: ImportedKey): string {
  return key.note ?? (key.reason === undefined ? '' : REASONS[key.reason]);
}
