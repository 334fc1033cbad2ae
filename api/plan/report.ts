/** What `plan` tells, as data. */
import {
  batchArithmetic,
  type BatchArithmetic,
  promises,
  type Promises,
  type Recipe,
  type RecipeIssue,
  recipeKeys,
  runIssues,
  totalIterations,
  valueOf,
} from '../../core/recipe/index.ts';
import { samplesResponses } from '../../core/run-kinds.ts';
import { canonicalJson } from '../../core/canonical.ts';
import { builtinScorer } from '../../rewards/registry.ts';
import type { CheckResult, PlanCheck } from '../checks/checks.ts';
import type { Measured } from './measure.ts';
import type { Resources } from './resources.ts';

export interface PlanReport {
  readonly file: string;
  readonly name: string;
  readonly kind: Recipe['kind'];
  /** Keys that differ from their default. */
  readonly set: readonly { readonly path: string; readonly value: unknown }[];
  readonly batch: BatchArithmetic;
  readonly run: RunLength;
  readonly promises: Promises;
  readonly checks: readonly PlanCheck[];
  /** Absent for a model that cannot be read, and when another machine is asked about. */
  readonly memory?: NonNullable<Resources['memory']>;
  /** What the machine holds that is asked about (`--machine`). */
  readonly machine?: NonNullable<Resources['machine']>;
  readonly disk?: Resources['disk'];
  /** What `--measure` measured, when the recipe is ready to be run. */
  readonly measured?: Measured;
  readonly problems: readonly RecipeIssue[];
  readonly recipe: Recipe;
}

export interface RunLength {
  /** null: only known with the number of rows. */
  readonly iterations: number | null;
  readonly optimizerSteps: number | null;
  readonly responses: number | null;
  readonly checkpoints: number | null;
  readonly validations: number | null;
}

export function planReport(file: string, recipe: Recipe, { checks, rows, ...scored }: CheckResult): PlanReport {
  const batch = batchArithmetic(recipe);
  return {
    file,
    name: recipe.name,
    kind: recipe.kind,
    set: recipeKeys
      .map(({ path, default: fallback }) => ({ path, value: valueOf(recipe, path), fallback }))
      .filter(({ value, fallback }) => fallback === undefined || canonicalJson(value) !== canonicalJson(fallback))
      .map(({ path, value }) => ({ path, value })),
    batch,
    run: runLength(recipe, batch, rows),
    promises: promises(recipe, areDeclared(recipe, scored)),
    checks,
    problems: runIssues(recipe),
    recipe,
  };
}

/** Is every scorer of the run declared deterministic? */
function areDeclared({ kind, reward }: Recipe, found: Pick<CheckResult, 'scorers' | 'deterministic'>): boolean {
  const { path, deterministic } = reward.custom_reward_function;
  if (!found.deterministic) return false;
  if (!samplesResponses(kind) || path === null) return found.scorers.every((name) => builtinScorer(name).deterministic);
  return deterministic;
}

function runLength(recipe: Recipe, batch: BatchArithmetic, rows: number | undefined): RunLength {
  const {
    total_training_steps: steps,
    save_freq: saveFreq,
    test_freq: testFreq,
    val_before_train: before,
  } = recipe.trainer;
  if (steps === null && rows === undefined) {
    return { iterations: null, optimizerSteps: null, responses: null, checkpoints: null, validations: null };
  }
  const iterations = totalIterations(recipe, rows ?? 0);
  return {
    iterations,
    optimizerSteps: iterations * batch.optimizerSteps,
    responses: iterations * batch.responses,
    checkpoints: saveFreq > 0 ? Math.ceil(iterations / saveFreq) : 1,
    validations:
      recipe.data.val_files === null ? 0 : (before ? 1 : 0) + (testFreq > 0 ? Math.ceil(iterations / testFreq) : 1),
  };
}
