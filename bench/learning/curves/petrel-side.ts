/** petrel's learning curves: one run for each seed. */
import { join } from 'node:path';
import { metricRows } from '../../../log/run/metric-rows.ts';
import { completedRun } from '../completed-run.ts';
import { example, overridesOf, settings } from './settings.ts';
import type { CurveEntry } from './settings.ts';

/** The mean reward of the responses of each iteration. */
export async function petrelCurve(home: string, entry: CurveEntry, seed: number): Promise<number[]> {
  const { log } = await completedRun(home, join(example, 'recipe.yaml'), overridesOf(entry, seed));
  const rewards = (await metricRows(log)).flatMap(({ metrics }) => metrics['critic/score/mean'] ?? []).map(Number);
  if (rewards.length !== settings.iterations)
    throw new Error(`the run has the reward of ${rewards.length} iterations, not of ${settings.iterations}`);
  return rewards;
}
