/** `petrel plan`, for the command line and for programs. */
import type { ApiContext } from '../context.ts';
import type { LoadedRecipe } from '../recipes/recipe-file.ts';
import { runChecks } from './checks.ts';
import { planChecks } from './plan-checks.ts';
import { RecipeInputs } from './recipe-inputs.ts';
import { planReport } from './report.ts';
import type { PlanReport } from './report.ts';
import { resourcesOf, resourceWarnings } from './resources.ts';

/** Checks what `run` checks; starts nothing and leaves no object in the store. */
export async function planRun({ recipe, shown }: LoadedRecipe, context: ApiContext): Promise<PlanReport> {
  const { home, env, notice } = context;
  const inputs = new RecipeInputs(recipe, { home, env, now: new Date(), say: notice }, { withoutWeights: true });
  const report = planReport(shown, recipe, await runChecks(planChecks, inputs));
  const resources = await resourcesOf(inputs, report.run.checkpoints);
  if (resources === undefined) return report;
  return { ...report, ...resources, checks: [...report.checks, ...resourceWarnings(resources)] };
}
