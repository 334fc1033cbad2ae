import { createReadStream, statSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { InvalidInputError } from '../../core/errors.ts';
import type { Recipe } from '../../core/recipe/index.ts';
import { parseRow } from '../data/rows-file.ts';
import type { Finding, Probe } from './checks.ts';
import { checkRowScorer } from './scorer-probe.ts';

export const trainRowsProbe: Probe = {
  name: 'training rows',
  look: async (recipe) => await lookAtRows(fileList(recipe.data.train_files), recipe, recipe.data.train_max_samples),
};

export const validationRowsProbe: Probe = {
  name: 'validation rows',
  look: async (recipe) =>
    recipe.data.val_files === null
      ? undefined
      : { detail: (await lookAtRows(fileList(recipe.data.val_files), recipe, recipe.data.val_max_samples)).detail },
};

function fileList(files: string | readonly string[]): readonly string[] {
  return typeof files === 'string' ? [files] : files;
}

/** Reads every row once and keeps none. */
async function lookAtRows(files: readonly string[], recipe: Recipe, limit: number): Promise<Finding> {
  let rows = 0;
  for (const file of files) {
    if (!statSync(file, { throwIfNoEntry: false })?.isFile()) throw new InvalidInputError(`there is no file ${file}`);
    if (!file.endsWith('.jsonl')) return { detail: `${file}: read when the run starts`, later: true };
    rows += await countRows(file, recipe);
  }
  if (rows === 0) throw new InvalidInputError(`${files.join(', ')}: no rows`);
  const used = limit < 0 ? rows : Math.min(rows, limit);
  return { detail: `${files.join(', ')}: ${rows} rows${used < rows ? `, ${used} of them used` : ''}`, rows: used };
}

async function countRows(file: string, recipe: Recipe): Promise<number> {
  let lineNumber = 0;
  let rows = 0;
  for await (const line of createInterface({
    input: createReadStream(file, 'utf8'),
    crlfDelay: Number.POSITIVE_INFINITY,
  })) {
    lineNumber += 1;
    if (line.trim() === '') continue;
    rows += 1;
    checkRow(line, `${file}:${lineNumber}`, recipe);
  }
  return rows;
}

function checkRow(line: string, where: string, recipe: Recipe): void {
  const row = parseRow(line, where);
  const missing = neededColumns(recipe).find((column) => row[column] === undefined || row[column] === null);
  if (missing !== undefined) {
    throw new InvalidInputError(`the row has no column "${missing}", it has ${Object.keys(row).join(', ')}`, { where });
  }
  try {
    checkRowScorer(row, recipe);
  } catch (error) {
    if (!(error instanceof InvalidInputError)) throw error;
    throw new InvalidInputError(error.message, { where, ...(error.hint === undefined ? {} : { hint: error.hint }) });
  }
}

function neededColumns({ kind, data, reward }: Recipe): readonly string[] {
  if (kind === 'sft') return [data.prompt_key, data.response_key];
  const chosenByRow = reward.scorer === null && reward.custom_reward_function.path === null;
  return chosenByRow ? [data.prompt_key, data.reward_fn_key] : [data.prompt_key];
}
