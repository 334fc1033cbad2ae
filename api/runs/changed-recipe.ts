/**
 * The recipe of a run with some keys changed, for a resume or a fork: the differences, what they mean for the run's
 * history, and new inputs for files that the user named again. All other inputs keep their digests.
 */
import { basename, join } from 'node:path';
import { runKinds } from '../../core/run-kinds.ts';
import { InvalidInputError } from '../../core/errors.ts';
import {
  applyOverrides,
  checkRecipe,
  ownModuleKeys,
  ownModuleKinds,
  ownModulePath,
  parseOverride,
  parseRecipe,
  parseStoredRecipe,
  recipeChanges,
  runIssues,
} from '../../core/recipe/index.ts';
import type { OwnModuleKind, Recipe, RecipeChange, Tree } from '../../core/recipe/index.ts';
import type { RevisionRecord, RunInputs } from '../../core/records/schema.ts';
import { keepInputs } from '../../log/retention/inputs.ts';
import { digestOf } from '../../log/objects/digest.ts';
import { modelFolder } from '../../log/inputs/model-facts.ts';
import { openTokenizer } from '../../models/tokenizer.ts';
import { showValue } from '../../core/recipe/show-value.ts';
import { absolutePaths } from '../recipes/recipe-paths.ts';
import { loadRecipe } from '../recipes/recipe-file.ts';
import { recipeErrors } from '../recipes/recipe-issues.ts';
import type { RecipeLayer } from '../recipes/recipe-issues.ts';
import { assertFits, checkedModule, inputsOf } from '../inputs/own-modules.ts';
import type { CheckedModule } from '../inputs/own-modules.ts';
import { scorerOf } from './prepare.ts';
import { blobsOf, startedSampler } from './sampler-start.ts';
import { assertScorer } from '../inputs/scorer-rules.ts';
import { checkStoredRows } from '../inputs/stored-rows.ts';
import type { PreparePorts } from '../inputs/prepare-ports.ts';
import type { RowsPart } from '../inputs/rows.ts';
import { storeRowsLike } from '../inputs/rows-format1.ts';
import { withoutPaths } from './start.ts';
import { userHome } from '../../infra/home.ts';

export interface ChangedRecipe {
  /** The recipe as stored in records: without paths. */
  readonly recipe: Recipe;
  readonly inputs: RunInputs;
  /** Code of the user's own that is new. */
  readonly modules: readonly Uint8Array[];
  readonly changes: readonly RecipeChange[];
  /** The changes that change the experiment. */
  readonly asks: readonly RecipeChange[];
  readonly notes: readonly string[];
}

export interface RecipeWords {
  /** `key=value`. */
  readonly overrides: readonly string[];
  /** A recipe file in place of the run's own recipe. */
  readonly file: string | undefined;
  readonly cwd: string;
}

/** Explains whether a key that a resumed run cannot change may be changed by this command. */
export type MayChange = (change: RecipeChange) => boolean;

/** A resume keeps the identity of the run. */
export const inTheSameRun: MayChange = ({ change }) => change !== 'fixed';
/** Which model scores is an input of the run. */
const ofRewardModel: ReadonlySet<string> = new Set(['reward.reward_model.enable', 'reward.reward_model.path']);

/** A fork begins with the arithmetic of its origin, and can be resumed with another one. */
/** Keys whose change is a change of arithmetic: engine-term.ts. */
export const arithmeticPaths: ReadonlySet<string> = new Set([
  'trainer.engine',
  'trainer.fsdp_size',
  'trainer.ulysses_sequence_parallel_size',
  'trainer.tensor_model_parallel_size',
  'trainer.expert_model_parallel_size',
  'trainer.cpu_offload',
  'trainer.state_dtype',
]);

/** A fork has a name, rows and a seed of its own. Its model must have the same shape as its first state. */
export const inAFork: MayChange = ({ path, change }) =>
  (change !== 'fixed' && !arithmeticPaths.has(path)) ||
  path === 'name' ||
  path === 'seed' ||
  path === 'deterministic' ||
  path.startsWith('data.') ||
  (path.startsWith('reward.') && !ofRewardModel.has(path));

/**
 * Undefined when nothing differs. Throws InvalidInputError for an invalid recipe, and for a key that cannot be changed.
 */
export async function changedRecipe(
  words: RecipeWords,
  before: RevisionRecord,
  mayChange: MayChange,
  ports: PreparePorts,
): Promise<ChangedRecipe | undefined> {
  const old = parseStoredRecipe(before.recipe);
  const loaded = words.file === undefined ? overridden(old, words) : namedAs(old, words.file, words);
  const problems = runIssues(loaded.recipe);
  if (problems.length > 0) throw recipeErrors(problems, loaded.layers);
  const recipe = parseRecipe(withoutPaths(loaded.recipe));
  const found = recipeChanges(old, recipe);
  const inputs = await keptInputs(loaded.recipe, found, before.inputs, ports);
  const changes = [...found, ...inputs.changes];
  const fixed = changes.filter((change) => !mayChange(change));
  if (fixed.length > 0) throw cannotChange(fixed, mayChange === inAFork);
  if (changes.length === 0) return undefined;
  return {
    recipe,
    inputs: inputs.inputs,
    modules: inputs.modules,
    changes,
    asks: changes.filter((change) => isHistory(change, recipe)),
    notes: inputs.notes,
  };
}

/** `actor.optim.lr: 0.003 -> 0.001`. */
export function recipeChangeText({ path, from, to, change }: RecipeChange): string {
  return `${path}: ${showValue(from)} -> ${showValue(to)}${change === 'free' || path === 'name' ? '' : '   (changes the experiment)'}`;
}

/** The number of iterations changes the learning rates when the schedule depends on the last iteration. */
function isHistory({ path, change }: RecipeChange, { actor: { optim } }: Recipe): boolean {
  if (path === 'trainer.total_training_steps' || path === 'trainer.total_epochs')
    return optim.lr_scheduler_type !== 'constant' && optim.total_training_steps === null;
  return change !== 'free';
}

function overridden(
  old: Recipe,
  { overrides, cwd }: RecipeWords,
): { readonly recipe: Recipe; readonly layers: readonly RecipeLayer[] } {
  const parsed = overrides.map(parseOverride);
  const layers = parsed.map(
    (override): RecipeLayer => ({ type: 'override', override, apply: (tree) => applyOverrides(tree, [override]) }),
  );
  // Only the files named here are paths on this machine. The file names in the run's own recipe are no longer paths.
  const own = absolutePaths(applyOverrides({}, parsed), cwd, userHome());
  const removed = applyOverrides(
    old as unknown as Tree,
    parsed.filter(({ type }) => type === 'remove'),
  );
  const placed = parsed
    .filter(({ type }) => type === 'set')
    .map((override) => ({ ...override, value: override.path.reduce<unknown>((at, name) => (at as Tree)[name], own) }));
  const result = checkRecipe(applyOverrides(removed, placed as typeof parsed));
  if (!result.ok) throw recipeErrors(result.issues, layers);
  return { recipe: result.recipe, layers };
}

/** A recipe file does not decide the run's name and store. */
function namedAs(
  old: Recipe,
  file: string,
  { overrides, cwd }: RecipeWords,
): { readonly recipe: Recipe; readonly layers: readonly RecipeLayer[] } {
  const { recipe, layers } = loadRecipe(file, overrides, cwd);
  return {
    recipe: parseRecipe({ ...recipe, name: overrides.some((one) => one.startsWith('name=')) ? recipe.name : old.name }),
    layers,
  };
}

interface NewInputs {
  readonly inputs: RunInputs;
  readonly modules: readonly Uint8Array[];
  /** Files that have the same name and another content. */
  readonly changes: readonly RecipeChange[];
  readonly notes: readonly string[];
}

const rowKeys = [
  'format',
  'instruction',
  'prompt_key',
  'response_key',
  'reward_fn_key',
  'max_prompt_length',
  'max_length',
  'truncation',
  'filter_overlong_prompts',
  'chat_template',
  'apply_chat_template_kwargs',
  'template_date',
].map((name) => `data.${name}`);
const isPath = (files: string | readonly string[] | null): boolean =>
  (typeof files === 'string' ? [files] : (files ?? [])).some((file) => file.startsWith('/'));

/** Stores the inputs, and pins them so that the janitor keeps them until a revision names them. */
async function keptInputs(...of: Parameters<typeof newInputs>): Promise<NewInputs> {
  for (;;) {
    const found = await newInputs(...of);
    if (await keepInputs(of[3].store, found.inputs)) return found;
  }
}

async function newInputs(
  recipe: Recipe,
  changes: readonly RecipeChange[],
  before: RunInputs,
  ports: PreparePorts,
): Promise<NewInputs> {
  const { model, train, trainRows, validation, validationRows, scorer, reference, teacher, rewardModel } = before;
  const rows = await newRows(recipe, 'train', changes, before, ports);
  const checked =
    recipe.data.val_files === null ? undefined : await newRows(recipe, 'validation', changes, before, ports);
  const scored = await newScorer(recipe, changes, before);
  await checkKeptRows(recipe, changes, before, { train: rows, validation: checked }, ports);
  const own = await newOwnModules(recipe, before, rows?.digest ?? train);
  const sampler = await startedSampler(own.fresh, recipe, { train: rows?.digest ?? train, store: ports.store });
  const inputs: RunInputs = {
    model,
    ...(reference && { reference }),
    ...(teacher && { teacher }),
    ...(rewardModel && { rewardModel }),
    ...(rows ? { train: rows.digest, trainRows: rows.count } : { train, trainRows }),
    ...(checked
      ? { validation: checked.digest, validationRows: checked.count }
      : recipe.data.val_files !== null && validation && validationRows
        ? { validation, validationRows }
        : {}),
    ...(scored ? { scorer: scored.input } : scorer && { scorer }),
    ...own.inputs,
    ...(sampler && { sampler: sampler.input }),
  };
  const content = (path: string, change: RecipeChange['change'], from: unknown, to: unknown): RecipeChange[] =>
    from === to || to === undefined || changes.some((one) => one.path.startsWith(path) || rowKeys.includes(one.path))
      ? []
      : [{ path, from: `content ${String(from).slice(0, 12)}`, to: `content ${String(to).slice(0, 12)}`, change }];
  return {
    inputs,
    modules: [...(scored?.modules ?? []), ...blobsOf(own.fresh, sampler)],
    changes: [
      ...content('data.train_files', 'fixed', train, rows?.digest),
      ...content('data.val_files', 'ask', validation, checked?.digest),
      ...content('reward.custom_reward_function', 'ask', contentOf(scorer), contentOf(scored?.input)),
      ...own.fresh.flatMap(({ kind, input }) =>
        content(ownModuleKeys[kind], 'ask', before[kind]?.module, input.module),
      ),
    ],
    notes: [...(rows?.notes ?? []), ...(checked?.notes ?? [])],
  };
}

/**
 * Rows are read again when the user names their files again. A changed key that decides how rows are read needs the
 * files.
 */
async function newRows(
  recipe: Recipe,
  part: 'train' | 'validation',
  changes: readonly RecipeChange[],
  before: RunInputs,
  ports: PreparePorts,
) {
  const key = part === 'train' ? 'data.train_files' : 'data.val_files';
  const own = part === 'train' ? ['data.train_max_samples', 'data.train_file_weights'] : ['data.val_max_samples'];
  if (runKinds[recipe.kind].validation === 'none' && part === 'validation') return undefined;
  if (!isPath(part === 'train' ? recipe.data.train_files : recipe.data.val_files)) {
    const reread = changes.find(({ path }) => rowKeys.includes(path) || own.includes(path));
    if (reread === undefined) return undefined;
    throw new InvalidInputError(
      `${reread.path} changes how rows are read, and the run keeps only the rows, not the files`,
      {
        hint: `name the files again: ${key}=<path>`,
      },
    );
  }
  const tokenizer = await openTokenizer(await modelFolder(ports.store, before.model, join(ports.home, 'cache')));
  return storeRowsLike(before, recipe, part, tokenizer, ports);
}

/** Content of a module and of all its files. */
function contentOf(scorer: RunInputs['scorer']): string | undefined {
  if (scorer?.type !== 'module') return undefined;
  return scorer.files === undefined ? scorer.module : digestOf([scorer.module, scorer.files]);
}

async function newScorer(recipe: Recipe, changes: readonly RecipeChange[], before: RunInputs) {
  const { path, requirements } = recipe.reward.custom_reward_function;
  if (path?.startsWith('/') && requirements !== null && !requirements.startsWith('/'))
    throw new InvalidInputError('the scorer names packages, and the run keeps only a copy of the list', {
      hint: 'name it again, too: reward.custom_reward_function.requirements=<path>',
    });
  const touched = changes.find(
    (one) => one.path === 'reward.scorer' || one.path.startsWith('reward.custom_reward_function'),
  );
  const { scorer } = recipe.reward;
  const promises = touched !== undefined || changes.some((one) => one.path === 'deterministic');
  if (promises && path === null && scorer !== null) assertScorer(recipe, scorer);
  if (path?.startsWith('/') || (touched !== undefined && path === null)) return scorerOf(recipe);
  if (touched === undefined || before.scorer === undefined) return undefined;
  throw new InvalidInputError(`${touched.path} needs the scorer's file, and the run keeps only a copy of it`, {
    hint: 'name it again: reward.custom_reward_function.path=<path>',
  });
}

/** A scorer that rows choose must suit every row that is not read again, as it does when a run starts. */
async function checkKeptRows(
  recipe: Recipe,
  changes: readonly RecipeChange[],
  { train, validation }: RunInputs,
  read: Readonly<Record<RowsPart, unknown>>,
  { store }: PreparePorts,
): Promise<void> {
  if (!changes.some(({ path }) => path.startsWith('reward.') || path === 'deterministic')) return;
  if (read.train === undefined) await checkStoredRows(recipe, 'train', train, store);
  const validates = recipe.data.val_files !== null && validation !== undefined;
  if (read.validation === undefined && validates) await checkStoredRows(recipe, 'validation', validation, store);
}

/** A module is read again when the user names its file again; else the run keeps its copy. Both must fit the recipe. */
async function newOwnModules(recipe: Recipe, before: RunInputs, train: string) {
  const fresh: CheckedModule[] = [];
  const kept: Partial<Pick<RunInputs, OwnModuleKind>> = {};
  for (const kind of ownModuleKinds) {
    const path = ownModulePath(recipe, kind);
    const copy = before[kind];
    if (path === undefined) continue;
    if (path.startsWith('/')) fresh.push(await checkedModule(kind, path, recipe));
    else if (copy?.fileName === basename(path)) {
      if (kind === 'sampler' && train !== before.train)
        throw new InvalidInputError(`${ownModuleKeys.sampler}: the sampler has not seen these rows`, {
          hint: `name its file again: ${ownModuleKeys.sampler}=<path>`,
        });
      Object.assign(kept, { [kind]: copy });
    } else throw new InvalidInputError(`${ownModuleKeys[kind]}: the run keeps no copy of ${path}`, { where: path });
  }
  const inputs = { ...kept, ...inputsOf(fresh) };
  assertFits(recipe, inputs);
  return { fresh, inputs };
}

function cannotChange(fixed: readonly RecipeChange[], fork: boolean): InvalidInputError {
  const lines = fixed.map((change) => `  ${recipeChangeText(change).replace(/ {3}\(.*$/, '')}`);
  const where = fork ? 'a fork continues with its origin’s model' : 'that would be another run';
  return new InvalidInputError(
    `${fixed.length === 1 ? 'this key' : 'these keys'} cannot be changed: ${where}\n${lines.join('\n')}`,
    {
      hint:
        fork && fixed.every(({ path }) => arithmeticPaths.has(path))
          ? 'fork the run without them, then petrel stop and petrel resume the fork with them'
          : fork || fixed.some(({ path }) => !inAFork({ path, from: 0, to: 0, change: 'fixed' }))
            ? 'petrel run starts a run of its own'
            : 'petrel fork <run> --from <k> key=value makes another run of it',
    },
  );
}
