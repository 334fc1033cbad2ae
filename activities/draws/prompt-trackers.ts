/**
 * The draws of a run with the estimator spo: prompts whose outcome is uncertain are chosen more often
 * (core/rl/spo-tracker.ts).
 */
import { promptSamplingWeight, startTracker } from '../../core/rl/spo-tracker.ts';
import { decodeTrackers, trackersBlob } from '../../core/wire/prompt-trackers.ts';
import type { PromptTrackers } from '../../core/wire/prompt-trackers.ts';
import { tracksPrompts } from '../../core/recipe/index.ts';
import type { Head, RunLog } from '../../log/run/run-log.ts';
import type { ActivityPorts } from '../ports/index.ts';
import { choosesPrompts } from '../settings.ts';
import { drawnByWeight } from './weighted-draws.ts';
import type { Weighed } from './weighted-draws.ts';

/** What it reads of a run's context. */
interface Drawing extends Weighed {
  readonly log: RunLog;
}

/** The context with the draws of the next iteration. Where prompts are not chosen it is unchanged. */
export async function withChosenPrompts<Context extends Drawing>(
  { getJsonBlob }: Pick<ActivityPorts, 'getJsonBlob'>,
  context: Context,
  head: Head | undefined,
): Promise<Context> {
  const { log, recipe } = context;
  if (!tracksPrompts(recipe) || !choosesPrompts(recipe)) return context;
  const blob = head && trackersBlob(head.counters);
  const trackers: PromptTrackers =
    blob === undefined ? new Map() : decodeTrackers(await getJsonBlob(log.store, log.runId, blob), blob);
  const unknown = startTracker([], 0, recipe.algorithm.spo.rho.clip_lower);
  return drawnByWeight(context, ({ row }) => promptSamplingWeight(trackers.get(row) ?? unknown));
}
