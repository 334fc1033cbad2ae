/** A recipe's data files as tokenised rows. */
import type { Recipe } from '../../core/recipe/index.ts';
import { readRows, tokenizeRows } from '../../models/dataset.ts';
import type { Row } from '../../models/dataset.ts';
import type { DatasetFact } from '../../models/dataset-fact.ts';
import { rowError } from '../../models/dataset.ts';
import type { Tokenizer } from '../../models/tokenizer.ts';
import { InvalidInputError } from '../../core/errors.ts';
import { scorerNameFor } from '../../rewards/registry.ts';

export type RowsPart = 'train' | 'validation';

export interface RunRows {
  readonly dataset: DatasetFact;
  /** What was left out or cut. */
  readonly notes: readonly string[];
}

/** Throws InvalidInputError with file and row number. `now`: the day that templates see, unless the recipe names one. */
export async function loadRows(recipe: Recipe, part: RowsPart, tokenizer: Tokenizer, now: Date): Promise<RunRows> {
  const { data, model, kind } = recipe;
  const { dataset, counts } = await tokenizeRows(checkedRows(recipe, part), tokenizer, {
    kind,
    maxLength: kind === 'sft' ? data.max_length : data.max_prompt_length,
    truncation: data.truncation,
    filterOverlong: data.filter_overlong_prompts,
    maxSamples: part === 'train' ? data.train_max_samples : data.val_max_samples,
    chatTemplate: data.chat_template,
    ...(model.custom_chat_template === null ? {} : { customTemplate: model.custom_chat_template }),
    templateKwargs: data.apply_chat_template_kwargs,
    now: `${data.template_date ?? now.toISOString().slice(0, 10)}T00:00:00`,
  });
  const notes = [
    ...(counts.filtered > 0 ? [`${part}: ${counts.filtered} rows over the limit left out, ${counts.rows} kept`] : []),
    ...(counts.truncated > 0 ? [`${part}: ${counts.truncated} prompts cut at the ${data.truncation}`] : []),
  ];
  return { dataset, notes };
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
