/** The draws of a run with the estimator spo: prompts whose outcome is uncertain are chosen more often (core/rl/spo-tracker.ts). */
import { at } from '../core/at.ts';
import { promptSamplingWeight, startTracker } from '../core/rl/spo-tracker.ts';
import { chooseByWeight } from '../core/rl/weighted-choice.ts';
import { decodeTrackers, trackersBlob } from '../core/wire/prompt-trackers.ts';
import type { PromptTrackers } from '../core/wire/prompt-trackers.ts';
import type { Recipe } from '../core/recipe/index.ts';
import type { Draw } from '../core/rl/draws.ts';
import type { Head, RunLog } from '../infra/store/run-log.ts';
import type { ActivityPorts } from './ports.ts';
import { choosesPrompts } from './settings.ts';

/** What it reads of a run's context. */
interface Drawing {
  readonly log: RunLog;
  readonly recipe: Recipe;
  readonly draws: (cursor: number) => readonly Draw[];
  readonly candidates?: (cursor: number) => readonly Draw[];
}

/** Second word of the key of the random numbers. Sampling responses uses 1 and 2, policy filtration 3. */
const choicePurpose = 4;

/** The context with the draws of the next iteration. Where prompts are not chosen it is unchanged. */
export async function withChosenPrompts<Context extends Drawing>(
  { getJsonBlob }: Pick<ActivityPorts, 'getJsonBlob'>,
  context: Context,
  head: Head | undefined,
): Promise<Context> {
  const { log, recipe, draws: candidates } = context;
  if (!choosesPrompts(recipe)) return context;
  const blob = head && trackersBlob(head.counters);
  const trackers: PromptTrackers =
    blob === undefined ? new Map() : decodeTrackers(await getJsonBlob(log.store, log.runId, blob), blob);
  const unknown = startTracker([], 0, recipe.algorithm.spo.rho.clip_lower);
  return {
    ...context,
    candidates,
    draws: (cursor) => {
      const all = candidates(cursor);
      const weights = all.map(({ row }) => promptSamplingWeight(trackers.get(row) ?? unknown));
      const numbers = all.map(({ draw }) => draw);
      const key = [recipe.seed >>> 0, choicePurpose] as const;
      return chooseByWeight(weights, numbers, recipe.data.train_batch_size, key).map((place) => at(all, place));
    },
  };
}
