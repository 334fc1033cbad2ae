/** A recipe's data files as rows of a dataset. */
import { InvalidInputError } from '../../core/errors.ts';
import type { Recipe } from '../../core/recipe/index.ts';
import type { DatasetRules } from '../../core/records/dataset-index.ts';
import { packRows, readRows, rowError } from '../../models/dataset.ts';
import type { PutBlock, Row, RowCounts, TokenizeOptions } from '../../models/dataset.ts';
import type { Tokenizer } from '../../models/tokenizer.ts';
import { scorerNameFor } from '../../rewards/registry.ts';

export type RowsPart = 'train' | 'validation';

export interface RunRows {
  readonly count: number;
  readonly rules: DatasetRules;
  /** What was left out or cut. */
  readonly notes: readonly string[];
}

/**
 * Reads the rows once, checks them and hands them over in blocks; they are tokenised when they are drawn. Throws
 * InvalidInputError with file and row number. `now`: the day that templates see, unless the recipe names one.
 */
export async function loadRows(
  recipe: Recipe,
  part: RowsPart,
  tokenizer: Tokenizer,
  now: Date,
  put: PutBlock,
): Promise<RunRows> {
  const options = tokenizeOptionsOf(recipe, part, now);
  const { rules, counts } = await packRows(checkedRows(recipe, part), tokenizer, options, put);
  return { count: counts.rows, rules, notes: notesOf(counts, part, options) };
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
    ...(counts.filtered > 0 ? [`${part}: ${counts.filtered} rows over the limit left out, ${counts.rows} kept`] : []),
    ...(counts.truncated > 0 ? [`${part}: ${counts.truncated} prompts cut at the ${truncation}`] : []),
  ];
}

/** The files of a part, as the recipe lists them. */
export function filesOf({ data }: Recipe, part: RowsPart): readonly string[] {
  const files = part === 'train' ? data.train_files : (data.val_files ?? []);
  return typeof files === 'string' ? [files] : files;
}

/** Rows as they are read. Throws InvalidInputError at the first that has not what the recipe needs. */
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
  for await (const row of readRows(filesOf(recipe, part), columns)) {
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
    scorerNameFor(row.dataSource);
  } catch (error) {
    if (!(error instanceof InvalidInputError)) throw error;
    throw rowError(row, error.message, error, error.hint);
  }
}
