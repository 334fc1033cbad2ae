/**
 * `npm run algorithms`: runs every recipe of examples/10-algorithms with each seed on a stack of its own, checks what
 * entries.ts promises, and writes docs/look-up/algorithms.md. The exit code is 1 when a run failed.
 */
import { openStack } from '../../api/index.ts';
import { errorToJson, PetrelError } from '../../core/errors.ts';
import { engineInfo } from '../../native/index.ts';
import { describeMachine } from '../machine.ts';
import { privateHome } from '../run/private-home.ts';
import { documentPath, writeDocument } from './document.ts';
import { judge } from './judge.ts';
import { readOptions } from './options.ts';
import type { AlgorithmOptions } from './options.ts';
import { algorithmRecipes, resolved } from './recipes.ts';
import type { AlgorithmEntry } from './entry.ts';
import type { AlgorithmRecipe } from './recipes.ts';
import type { AlgorithmResult } from './result.ts';
import { exportedModel, reasonOf, timedRun } from './run.ts';
import { tableHead, tableRow } from './table.ts';

async function main(words: readonly string[]): Promise<void> {
  const options = readOptions(words);
  const recipes = algorithmRecipes(options.recipes);
  const say = (text: string) => {
    if (!options.json) console.log(text);
  };
  const { home, remove } = privateHome();
  process.once('SIGINT', () => void remove().finally(() => process.exit(130)));
  const results: AlgorithmResult[] = [];
  const models = new Map<string, Promise<string>>();
  try {
    await openStack({ home, env: process.env }).up();
    say(tableHead());
    for (const recipe of recipes.filter((one) => !isWaiting(one))) {
      for (const seed of options.seeds) {
        const result = await resultOf(recipe, seed, home, models, options);
        results.push(result);
        if (options.json) console.log(JSON.stringify(result));
        else say(tableRow(result));
      }
    }
  } finally {
    await remove();
  }
  for (const { name, entry } of recipes.filter(isWaiting)) say(`${name} waits for ${entry?.waitsFor}`);
  const failed = results.filter(({ passed }) => !passed).length;
  if (options.document && failed === 0) say(`wrote ${write(recipes, results, words, options)}`);
  else if (options.document) say(`${documentPath} stays as it is, because a run failed`);
  process.exitCode = failed > 0 || results.length === 0 ? 1 : 0;
  const counts = { passed: results.length - failed, failed };
  console.log(options.json ? JSON.stringify(counts) : `${counts.passed} passed, ${counts.failed} failed`);
}

/** A recipe that waits for a key is not run. When it could be run, it is, and fails: its entry is out of date. */
const isWaiting = ({ entry, file }: AlgorithmRecipe): boolean =>
  entry?.waitsFor !== undefined && 'refused' in resolved(file);

async function resultOf(
  { name, file, entry }: AlgorithmRecipe,
  seed: number,
  home: string,
  models: Map<string, Promise<string>>,
  { secondsLimit }: AlgorithmOptions,
): Promise<AlgorithmResult> {
  const failed = (error: string) => ({ recipe: name, seed, passed: false, errors: [error] });
  if (entry === undefined) return failed('there is no entry in bench/algorithms/entries.ts');
  if (entry.waitsFor !== undefined)
    return failed(`it can be run now: remove waitsFor (${entry.waitsFor}) of its entry`);
  const loaded = resolved(file);
  if ('refused' in loaded) return failed(`the recipe is refused: ${loaded.refused}`);
  try {
    const needed = await neededModel(entry, home, models);
    const { observed, seconds, processorSeconds } = await timedRun(home, file, seed, needed);
    const judgement = judge(entry, observed, loaded.recipe.kind === 'rl');
    const isSlow = secondsLimit > 0 && seconds > secondsLimit;
    const errors = isSlow ? [slow(seconds, secondsLimit, processorSeconds)] : [];
    return {
      recipe: name,
      seed,
      passed: !isSlow && judgement.checks.every(({ ok }) => ok),
      seconds,
      processorSeconds,
      iterations: observed.iterations,
      judgement,
      errors,
    };
  } catch (error) {
    return failed(reasonOf(error));
  }
}

/**
 * Overrides that name the model of the recipe that this one needs. It is trained once, before the seconds are counted.
 */
async function neededModel(
  { needs }: AlgorithmEntry,
  home: string,
  models: Map<string, Promise<string>>,
): Promise<string[]> {
  if (needs === undefined) return [];
  const [recipe] = algorithmRecipes([needs.recipe]);
  if (recipe === undefined) throw new Error(`there is no recipe ${needs.recipe}`);
  const model = models.get(recipe.name) ?? exportedModel(home, recipe);
  models.set(recipe.name, model);
  return [`${needs.key}=${await model}`];
}

const slow = (seconds: number, limit: number, processorSeconds: number): string =>
  `it took ${seconds.toFixed(1)} s, more than ${limit} s, and ${processorSeconds.toFixed(1)} s of processor time; ` +
  'on a machine with other work use --seconds 0';

function write(
  recipes: readonly AlgorithmRecipe[],
  results: readonly AlgorithmResult[],
  words: readonly string[],
  { secondsLimit }: AlgorithmOptions,
): string {
  const { bf16, threads } = engineInfo();
  const machine = describeMachine({ precision: bf16 ? 'bf16' : 'fp32', threads, quick: false }, process.env);
  const command = ['npm run algorithms', ...(words.length === 0 ? [] : ['--', ...words])].join(' ');
  return writeDocument({ recipes, results, machine, command, ...(secondsLimit > 0 && { secondsLimit }) });
}

main(process.argv.slice(2)).catch((error: unknown) => {
  const { message, hint } = errorToJson(error);
  console.error(
    error instanceof PetrelError ? `algorithms: ${message}${hint === undefined ? '' : `\n${hint}`}` : error,
  );
  process.exitCode = error instanceof PetrelError && error.code === 'InvalidInput' ? 2 : 1;
});
