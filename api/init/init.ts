/** `petrel init`: a recipe, and what it needs besides what was given. */
import { existsSync, statSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { basename, join, relative, resolve } from 'node:path';
import { InvalidInputError, TerminalError } from '../../core/errors.ts';
import { packageRoot } from '../../infra/home.ts';
import { gsm8kInstruction, readRows, verlColumns } from '../../models/dataset.ts';
import type { Row, RowColumns } from '../../models/dataset.ts';
import { openTokenizer } from '../../models/tokenizer.ts';
import { plansOf } from '../engine-plans.ts';
import { SCORER_NAMES, scorerNameFor } from '../../rewards/registry.ts';
import { exampleRows, recipeText, scorerText } from './template.ts';
import type { RecipeChoices } from './template.ts';

export interface InitRequest {
  /** The folder for the recipe; it is made when it does not exist. */
  readonly folder: string;
  /** Rows; without them a few sums are written. */
  readonly data?: string | undefined;
  /** A folder, or a name on the hub; without it the small base of example 01. */
  readonly model?: string | undefined;
  /** A scorer's file or the name of a built-in one. */
  readonly reward?: string | undefined;
}

/** Paths are read from `cwd`. Returns the files written. Throws InvalidInputError, or TerminalError `Conflict`. */
export async function initRecipe(request: InitRequest, cwd: string): Promise<readonly string[]> {
  const folder = resolve(cwd, request.folder);
  const files = await filesOf(request, folder, cwd);
  const taken = [...files.keys()].filter((name) => existsSync(join(folder, name)));
  if (taken.length > 0)
    throw new TerminalError('Conflict', `${taken.join(', ')} exist already in ${folder}; nothing was written`, {
      hint: 'choose another folder: petrel init <folder>',
    });
  await mkdir(folder, { recursive: true });
  for (const [name, text] of files) await writeFile(join(folder, name), text, { flag: 'wx' });
  return [...files.keys()].map((name) => join(folder, name));
}

async function filesOf(request: InitRequest, folder: string, cwd: string): Promise<Map<string, string>> {
  const { data, model, reward } = request;
  const place = (path: string) => inRecipe(resolve(cwd, path), folder);
  const rows = data === undefined ? undefined : await lookAtRows(resolve(cwd, data));
  const chosen = rewardOf(reward, rows?.first, place, cwd);
  const isOwnBase = model === undefined;
  const modelFolder = isOwnBase ? join(packageRoot(), 'examples/01-arithmetic-grpo/base') : resolve(cwd, model);
  const isFolder = existsSync(modelFolder);
  if (!isFolder && /^[./~]/.test(model ?? '')) throw new InvalidInputError(`--model: there is no folder ${model}`);
  const recipe = recipeText({
    model: isFolder ? inRecipe(modelFolder, folder) : (model ?? ''),
    train: data === undefined ? './train.jsonl' : place(data),
    isGsm8k: rows?.isGsm8k ?? false,
    hasChatTemplate: !isFolder || (await openTokenizer(modelFolder)).chatTemplate !== undefined,
    prompts: 2 ** Math.floor(Math.log2(Math.min(64, rows?.count ?? 16))),
    ...(isOwnBase ? lengthsForSums(data !== undefined) : await lengthsFor(isFolder ? modelFolder : undefined)),
    reward: chosen ?? { type: 'file', path: './scorer.py' },
  });
  return new Map([
    ['recipe.yaml', recipe],
    ...(data === undefined ? [['train.jsonl', exampleRows()] as const] : []),
    ...(chosen === undefined ? [['scorer.py', scorerText] as const] : []),
  ]);
}

/**
 * The small base has 64 positions: enough for the sums that are written, often too few for rows that are given. `plan`
 * then warns.
 */
const lengthsForSums = (given: boolean): Pick<RecipeChoices, 'promptTokens' | 'responseTokens'> => ({
  promptTokens: given ? 512 : 32,
  responseTokens: 16,
});

/** Prompt and response together fit the model; of a model on the hub nothing is known yet. */
async function lengthsFor(folder: string | undefined): Promise<Pick<RecipeChoices, 'promptTokens' | 'responseTokens'>> {
  const positions =
    folder === undefined
      ? Number.POSITIVE_INFINITY
      : (await plansOf('native').readModel({ folder, head: 'tokens' })).maxPositions;
  const responseTokens = Math.min(256, Math.floor(positions / 2));
  return { promptTokens: Math.min(512, positions - responseTokens), responseTokens };
}

interface SeenRows {
  readonly first: Row;
  readonly isGsm8k: boolean;
  /** How many rows were seen, at most 64. */
  readonly count: number;
}

/** Rows in verl's columns, else in GSM8K's. Throws InvalidInputError for others. */
async function lookAtRows(file: string): Promise<SeenRows> {
  const columns: RowColumns = { kind: 'rl', ...verlColumns };
  try {
    return { isGsm8k: false, ...(await firstRows(file, columns)) };
  } catch (error) {
    const gsm8k = { instruction: gsm8kInstruction, asText: false };
    const seen = await firstRows(file, { ...columns, gsm8k }).catch(() => undefined);
    if (seen === undefined) throw error;
    return { isGsm8k: true, ...seen };
  }
}

async function firstRows(file: string, columns: RowColumns): Promise<Pick<SeenRows, 'first' | 'count'>> {
  let first: Row | undefined;
  let count = 0;
  for await (const row of readRows([file], columns)) {
    first ??= row;
    count += 1;
    if (count === 64) break;
  }
  if (first === undefined) throw new InvalidInputError(`${file}: there are no rows`);
  return { first, count };
}

/** undefined: a scorer must be written. */
function rewardOf(
  reward: string | undefined,
  first: Row | undefined,
  place: (path: string) => string,
  cwd: string,
): RecipeChoices['reward'] | undefined {
  if (reward === undefined) return first !== undefined && hasScorer(first) ? { type: 'rows' } : undefined;
  if (SCORER_NAMES.includes(reward)) return { type: 'builtin', name: reward };
  if (statSync(resolve(cwd, reward), { throwIfNoEntry: false })?.isFile()) return { type: 'file', path: place(reward) };
  throw new InvalidInputError(`--reward: expected a file or a built-in scorer, got ${reward}`, {
    hint: `built in: ${SCORER_NAMES.join(', ')}`,
  });
}

function hasScorer({ dataSource }: Row): boolean {
  try {
    return scorerNameFor(dataSource) !== '';
  } catch {
    return false;
  }
}

/** The path as a recipe in the folder names it: relative when it lies in or beside the folder. */
function inRecipe(path: string, folder: string): string {
  const way = relative(folder, path);
  if (!way.startsWith('..')) return `./${way}`;
  return way.startsWith('../..') ? path : `../${relative(resolve(folder, '..'), path) || basename(path)}`;
}
