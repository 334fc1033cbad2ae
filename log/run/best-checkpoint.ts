/** The best checkpoint of a run by the metric that its recipe names (`trainer.best_metric`). */
import { parseRecipe } from '../../core/recipe/index.ts';
import type { Recipe } from '../../core/recipe/index.ts';
import type { EvalRecord } from '../../core/records/schema.ts';
import type { CheckpointName } from './run-checkpoints.ts';
import type { RunLog } from './run-log.ts';

export interface BestCheckpoint extends CheckpointName {
  readonly metric: string;
  readonly value: number;
}

type Rule = Pick<Recipe['trainer'], 'best_metric' | 'best_metric_mode'>;

/**
 * Finds the best of the checkpoints whose policy was validated and whose manifest can be read; of equal ones the
 * oldest. Undefined when the recipe names no metric, or no validation has it.
 */
export async function bestCheckpoint(log: RunLog): Promise<BestCheckpoint | undefined> {
  const { best_metric: metric, best_metric_mode: mode } = await ruleOf(log);
  if (metric === null) return undefined;
  let best: BestCheckpoint | undefined;
  for await (const name of log.checkpoints.eachName()) {
    const value = valueOf(await evaluationOf(log, name.iteration), metric);
    if (value === undefined || (best !== undefined && isBetter(best.value, value, mode))) continue;
    if ((await log.checkpoints.manifestOf(name.iteration, name.stateDigest)) !== undefined)
      best = { ...name, metric, value };
  }
  return best;
}

async function ruleOf(log: RunLog): Promise<Rule> {
  return parseRecipe((await log.revision()).recipe).trainer;
}

/**
 * The validation of the state at this position, and not of another one there, when a term begins with the state of a
 * standby.
 */
async function evaluationOf(log: RunLog, position: number): Promise<EvalRecord | undefined> {
  const evaluation = await log.evaluations.at(position);
  return evaluation?.weightsDigest === (await log.at(position)).weightsDigest ? evaluation : undefined;
}

/** Undefined where the validation lacks the metric, or has no number for it. */
function valueOf(evaluation: EvalRecord | undefined, metric: string): number | undefined {
  const value = metric === 'accuracy' ? evaluation?.accuracy : evaluation?.metrics[metric];
  return typeof value === 'number' ? value : undefined;
}

function isBetter(a: number, b: number, mode: Rule['best_metric_mode']): boolean {
  return mode === 'max' ? a > b : a < b;
}
