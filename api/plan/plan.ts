/** `petrel plan`, for the command line and for programs. */
import type { ApiContext } from '../context.ts';
import type { LoadedRecipe } from '../recipes/recipe-file.ts';
import { runChecks } from '../checks/checks.ts';
import type { Check } from '../checks/checks.ts';
import { engineCheck } from '../checks/engine-check.ts';
import { memoryCheck } from '../checks/memory-check.ts';
import { planChecks } from '../checks/plan-checks.ts';
import { RecipeInputs } from '../inputs/recipe-inputs.ts';
import { parseMachine } from '../memory/cards.ts';
import { planReport } from './report.ts';
import type { PlanReport } from './report.ts';
import { resourceChecks, resourcesOf } from './resources.ts';

export interface PlanOptions {
  /** Run a few small iterations, when the recipe is ready to be run. */
  readonly measure?: boolean;
  /** Plan for this machine in place of the one here: `8xH100`, `8x80GiB`, `8xH100/2TiB`. */
  readonly machine?: string | undefined;
  /** Ends the measuring. */
  readonly signal?: AbortSignal;
}

/** What says nothing about another machine. */
const ofThisMachine: readonly Check[] = [memoryCheck, engineCheck];

/**
 * Checks what `run` checks; starts nothing and leaves no object in the store. Throws InvalidInputError for a machine
 * that is not known.
 */
export async function planRun(
  { recipe, shown }: LoadedRecipe,
  context: ApiContext,
  { measure: wanted = false, machine, signal = new AbortController().signal }: PlanOptions = {},
): Promise<PlanReport> {
  const { home, env, notice } = context;
  const inputs = new RecipeInputs(recipe, { home, env, now: new Date(), say: notice }, { withoutWeights: true });
  const stated = machine === undefined ? undefined : parseMachine(machine);
  const made = stated === undefined ? planChecks : planChecks.filter((check) => !ofThisMachine.includes(check));
  const report = planReport(shown, recipe, await runChecks(made, inputs));
  const resources = await resourcesOf(inputs, report.run.checkpoints, stated);
  const checks = [...report.checks, ...(resources === undefined ? [] : resourceChecks(resources, inputs))];
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
