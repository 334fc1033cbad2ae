/**
 * Every row of the data files is read and its columns checked; the first ones, or all, are tokenised. Nothing is
 * stored.
 */
import { runKinds } from '../../core/run-kinds.ts';
import { counted } from '../../core/quantities.ts';
import { checkedRows, filesOf } from '../inputs/rows.ts';
import type { RowsPart } from '../inputs/rows.ts';
import type { Check, Finding } from './checks.ts';
import type { RecipeInputs } from '../inputs/recipe-inputs.ts';

export const trainRowsCheck: Check = { name: 'training rows', look: (inputs) => lookAtRows(inputs, 'train') };

export const validationRowsCheck: Check = {
  name: 'validation rows',
  look: async (inputs) => {
    const { data, kind } = inputs.recipe;
    if (data.val_files === null || runKinds[kind].validation === 'none') return undefined;
    const { rows: _, ...finding } = await lookAtRows(inputs, 'validation');
    return finding;
  },
};

async function lookAtRows(inputs: RecipeInputs, part: RowsPart): Promise<Finding> {
  const files = filesOf(inputs.recipe, part).join(', ');
  if (!(await hasTokenizer(inputs))) return withoutTokens(inputs, part, files);
  const { count, notes, warnings, scorers } = await inputs.rows(part);
  return {
    ...(warnings.length > 0 && { status: 'warning' as const }),
    detail: [`${files}: ${counted(count, 'row')}`, ...notes, ...warnings].join('; '),
    rows: count,
    scorers,
  };
}

/** A model that cannot be read is refused by its own check; the rows are read all the same. */
async function withoutTokens(inputs: RecipeInputs, part: RowsPart, files: string): Promise<Finding> {
  const limit = part === 'train' ? inputs.recipe.data.train_max_samples : inputs.recipe.data.val_max_samples;
  const scorers = new Set<string>();
  let rows = 0;
  for await (const _ of checkedRows(inputs.recipe, part, scorers)) {
    if (limit >= 0 && rows >= limit) break;
    rows += 1;
  }
  return {
    status: 'later',
    detail: `${files}: ${counted(rows, 'row')}; their tokens are counted when the model can be read`,
    rows,
    scorers: [...scorers],
  };
}

function hasTokenizer(inputs: RecipeInputs): Promise<boolean> {
  return inputs.tokenizer().then(
    () => true,
    () => false,
  );
}
