/** A recipe's data files as rows of a dataset. */
import { InvalidInputError } from '../../core/errors.ts';
import { counted } from '../../core/quantities.ts';
import type { Recipe } from '../../core/recipe/index.ts';
import type { DatasetRules } from '../../core/records/dataset-index.ts';
import { packRows, readRows, rowError } from '../../models/dataset.ts';
import type { PutBlock, Row, RowCounts, TokenizeOptions } from '../../models/dataset.ts';
import type { BatchTokenizer } from '../../models/tokenizer.ts';
import { requirePackagesOf } from '../../rewards/host/python-scorers.ts';
import { scorerNameFor } from '../../rewards/registry.ts';

export type RowsPart = 'train' | 'validation';

export interface RunRows {
  readonly count: number;
  readonly rules: DatasetRules;
  /** What was left out or shortened. */
  readonly notes: readonly string[];
  /** What makes it likely that nothing is learned. */
  readonly warnings: readonly string[];
}

/** Notes and warnings, a line each. */
export function linesOf({ notes, warnings }: Pick<RunRows, 'notes' | 'warnings'>): string[] {
  return [...notes, ...warnings.map((text) => `warning: ${text}`)];
}

/**
 * Reads the rows once, checks them and passes them on in blocks. They are tokenised when they are drawn. Throws
 * InvalidInputError with file and row number. `now`: the date that templates see, unless the recipe sets one.
 */
export async function loadRows(
  recipe: Recipe,
  part: RowsPart,
  tokenizer: BatchTokenizer,
  now: Date,
  put: PutBlock,
): Promise<RunRows> {
  const options = tokenizeOptionsOf(recipe, part, now);
  const { rules, counts } = await packRows(checkedRows(recipe, part), tokenizer, options, put);
  return { count: counts.rows, rules, notes: notesOf(counts, part, options), warnings: warningsOf(counts, part) };
}

export function tokenizeOptionsOf({ data, model, kind }: Recipe, part: RowsPart, now: Date): TokenizeOptions {
  return {
    kind,
    maxLength: kind === 'sft' ? data.max_length : data.max_prompt_length,
    truncation: data.truncation,
    filterOverlong: data.filter_overlong_prompts,
    maxSamples: part === 'train' ? data.train_max_samples : data.val_max_samples,
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

/** Checks rows while they are read. Throws InvalidInputError at the first one that lacks what the recipe needs. */
export async function* checkedRows(recipe: Recipe, part: RowsPart): AsyncGenerator<Row> {
  const { kind, data } = recipe;
  const columns = {
    kind,
    promptKey: data.prompt_key,
    responseKey: data.response_key,
    rewardFnKey: data.reward_fn_key,
    ...(data.format === 'gsm8k' && {
      gsm8k: { instruction: data.instruction, asText: data.chat_template === 'none' },
    }),
  };
  const weights = part === 'train' ? (data.train_file_weights ?? undefined) : undefined;
  for await (const row of readRows(filesOf(recipe, part), columns, weights)) {
    if (rowsChooseScorers(recipe)) checkScorerOf(row);
    yield row;
  }
}

/** Whether each row's data source chooses its scorer. */
export function rowsChooseScorers({ kind, reward }: Recipe): boolean {
  return kind === 'rl' && reward.scorer === null && reward.custom_reward_function.path === null;
}

function checkScorerOf(row: Row): void {
  try {
    requirePackagesOf(scorerNameFor(row.dataSource));
  } catch (error) {
    if (!(error instanceof InvalidInputError)) throw error;
    throw rowError(row, error.message, error, error.hint);
  }
}
