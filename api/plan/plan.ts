/** `petrel plan`, for the command line and for programs. */
import type { ApiContext } from '../context.ts';
import type { LoadedRecipe } from '../recipes/recipe-file.ts';
import { runChecks } from '../checks/checks.ts';
import { planChecks } from '../checks/plan-checks.ts';
import { RecipeInputs } from '../inputs/recipe-inputs.ts';
import { planReport } from './report.ts';
import type { PlanReport } from './report.ts';
import { resourcesOf, resourceWarnings } from './resources.ts';

export interface PlanOptions {
  /** Run a few small iterations, when the recipe is ready to be run. */
  readonly measure?: boolean;
  /** Ends the measuring. */
  readonly signal?: AbortSignal;
}

/** Checks what `run` checks; starts nothing and leaves no object in the store. */
export async function planRun(
  { recipe, shown }: LoadedRecipe,
  context: ApiContext,
  { measure: wanted = false, signal = new AbortController().signal }: PlanOptions = {},
): Promise<PlanReport> {
  const { home, env, notice } = context;
  const inputs = new RecipeInputs(recipe, { home, env, now: new Date(), say: notice }, { withoutWeights: true });
  const report = planReport(shown, recipe, await runChecks(planChecks, inputs));
  const resources = await resourcesOf(inputs, report.run.checkpoints);
  const checks = [...report.checks, ...(resources === undefined ? [] : resourceWarnings(resources))];
  const isReady = report.problems.length === 0 && checks.every(({ status }) => status !== 'failed');
  const measured =
    wanted && isReady
      ? await (await import('./measure.ts')).measure(recipe, report.run.iterations, context, signal)
      : undefined;
  return {
    ...report,
    ...resources,
    checks,
    ...(measured && { measured }),
  };
}
