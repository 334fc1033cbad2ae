/** A recipe's data files as rows of a dataset. */
import { runKinds, samplesResponses } from '../../core/run-kinds.ts';
import { counted } from '../../core/quantities.ts';
import type { Recipe } from '../../core/recipe/index.ts';
import type { DatasetRules } from '../../core/records/dataset-index.ts';
import { knownTokens, packRows, readRows } from '../../models/dataset.ts';
import type { PutBlock, Row, RowCounts, TokenizeOptions } from '../../models/dataset.ts';
import type { BatchTokenizer } from '../../models/tokenizer.ts';
import { scorerRules } from './scorer-rules.ts';
import { chosenPlaces, rowsAt } from './subset.ts';

export type RowsPart = 'train' | 'validation';

export interface RunRows {
  readonly count: number;
  readonly rules: DatasetRules;
  /** What was left out or shortened. */
  readonly notes: readonly string[];
  /** What makes it likely that nothing is learned. */
  readonly warnings: readonly string[];
  /** Names of the built-in scorers that score the rows. */
  readonly scorers: readonly string[];
}

/** Notes and warnings, a line each. */
export function linesOf({ notes, warnings }: Pick<RunRows, 'notes' | 'warnings'>): string[] {
  return [...notes, ...warnings.map((text) => `warning: ${text}`)];
}

/**
 * Which rows a limit of `data.train_max_samples` leaves. Runs of older versions have the first, also with
 * `data.shuffle`.
 */
export type Subset = 'verl' | 'first';

/**
 * Reads the rows, checks them and passes them on in blocks, if somebody takes them; twice where a random subset is
 * taken. They are tokenised when they are drawn. Throws InvalidInputError with file and row number. `now`: the date
 * that templates see, unless the recipe sets one. `vocab`: tokens that the model has embeddings for; undefined where
 * the model cannot be read.
 */
export async function loadRows(
  recipe: Recipe,
  part: RowsPart,
  tokenizer: BatchTokenizer,
  now: Date,
  put: PutBlock | undefined,
  { subset = 'verl', vocab }: { readonly subset?: Subset; readonly vocab?: number | undefined } = {},
): Promise<RunRows> {
  const options = tokenizeOptionsOf(recipe, part, now);
  const scorers = new Set<string>();
  const isRandom = subset === 'verl' && takesRandomRows(recipe, part);
  const rows = isRandom ? await randomRows(recipe, part, scorers) : checkedRows(recipe, part, scorers);
  const limit = isRandom ? { maxSamples: -1 } : {};
  const known = vocab === undefined ? rows : knownTokens(rows, tokenizer, options, vocab);
  const { rules, counts } = await packRows(known, tokenizer, { ...options, ...limit }, put);
  const notes = notesOf(counts, part, options);
  return { count: counts.rows, rules, notes, warnings: warningsOf(counts, part), scorers: [...scorers] };
}

const maxSamplesOf = ({ data }: Recipe, part: RowsPart): number =>
  part === 'train' ? data.train_max_samples : data.val_max_samples;

export const takesRandomRows = (recipe: Recipe, part: RowsPart): boolean =>
  recipe.data.shuffle && maxSamplesOf(recipe, part) >= 0;

async function randomRows(recipe: Recipe, part: RowsPart, scorers: Set<string>): Promise<AsyncGenerator<Row>> {
  let total = 0;
  for await (const _ of checkedRows(recipe, part)) total++;
  const places = chosenPlaces(total, maxSamplesOf(recipe, part), recipe.data.seed ?? recipe.seed, part);
  return rowsAt(checkedRows(recipe, part, scorers), places, filesOf(recipe, part).join(', '));
}

export function tokenizeOptionsOf(recipe: Recipe, part: RowsPart, now: Date): TokenizeOptions {
  const { data, model, kind } = recipe;
  return {
    kind: runKinds[kind].rows,
    maxLength: samplesResponses(kind) ? data.max_prompt_length : data.max_length,
    truncation: data.truncation,
    filterOverlong: data.filter_overlong_prompts,
    maxSamples: maxSamplesOf(recipe, part),
    chatTemplate: data.chat_template,
    ...(model.custom_chat_template === null ? {} : { template: model.custom_chat_template }),
    templateKwargs: data.apply_chat_template_kwargs,
    now: `${data.template_date ?? now.toISOString().slice(0, 10)}T00:00:00`,
  };
}

export function notesOf(counts: RowCounts, part: RowsPart, { truncation }: TokenizeOptions): string[] {
  return [
    ...(counts.filtered > 0
      ? [`${part}: ${counted(counts.filtered, 'row')} over the limit left out, ${counts.rows} kept`]
      : []),
    ...(counts.truncated > 0 ? [`${part}: ${counted(counts.truncated, 'prompt')} cut at the ${truncation}`] : []),
  ];
}

/** A larger share of the characters than this is more than a rare emoji. */
const muchLost = 0.05;

function warningsOf({ lost }: RowCounts, part: RowsPart): string[] {
  if (lost === undefined || lost.lost <= muchLost * lost.characters) return [];
  const percent = Math.round((100 * lost.lost) / lost.characters);
  const examples = lost.examples.map((character) => JSON.stringify(character)).join(', ');
  return [
    `${part}: the tokenizer has no tokens for ${percent} % of the characters in the first rows (${examples}): the model never sees them`,
  ];
}

/** The files of a part, in the recipe's order. */
export function filesOf({ data }: Recipe, part: RowsPart): readonly string[] {
  const files = part === 'train' ? data.train_files : (data.val_files ?? []);
  return typeof files === 'string' ? [files] : files;
}

/**
 * Checks rows while they are read, and adds the names of their scorers to `scorers`. Throws InvalidInputError at the
 * first row that lacks what the recipe needs, and UnfitError where its scorer cannot work on this machine.
 */
export async function* checkedRows(
  recipe: Recipe,
  part: RowsPart,
  scorers: Set<string> = new Set(),
): AsyncGenerator<Row> {
  const { kind, data, reward } = recipe;
  const columns = {
    kind: runKinds[kind].rows,
    promptKey: data.prompt_key,
    responseKey: data.response_key,
    chosenKey: data.chosen_key,
    rejectedKey: data.rejected_key,
    unscored: reward.scorer === 'none' && reward.custom_reward_function.path === null,
    rewardFnKey: data.reward_fn_key,
    ...(data.format === 'gsm8k' && {
      gsm8k: { instruction: data.instruction, asText: data.chat_template === 'none' },
    }),
  };
  const check = scorerRules(recipe, scorers);
  const weights = part === 'train' ? (data.train_file_weights ?? undefined) : undefined;
  for await (const row of readRows(filesOf(recipe, part), columns, weights)) {
    check(row);
    yield row;
  }
}
