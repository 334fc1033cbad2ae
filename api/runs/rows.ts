/** A recipe's data files as tokenised rows. */
import type { Recipe } from '../../core/recipe/index.ts';
import { readRows, tokenizeRows } from '../../models/dataset.ts';
import type { DatasetFact } from '../../models/dataset-fact.ts';
import type { Tokenizer } from '../../models/tokenizer.ts';

export interface RunRows {
  readonly dataset: DatasetFact;
  /** What was left out or cut. */
  readonly notes: readonly string[];
}

/** Throws InvalidInputError with file and row number. `now`: the day that templates see, unless the recipe names one. */
export async function loadRows(
  recipe: Recipe,
  part: 'train' | 'validation',
  tokenizer: Tokenizer,
  now: Date,
): Promise<RunRows> {
  const { data, model, kind } = recipe;
  const files = part === 'train' ? data.train_files : (data.val_files ?? []);
  const rows = readRows(typeof files === 'string' ? [files] : files, {
    kind,
    promptKey: data.prompt_key,
    responseKey: data.response_key,
    rewardFnKey: data.reward_fn_key,
  });
  const { dataset, counts } = await tokenizeRows(rows, tokenizer, {
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
