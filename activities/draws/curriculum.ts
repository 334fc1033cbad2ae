/** The draws of a run with a curriculum: prompts that are passed over in this iteration are left out. */
import { isPassedOver } from '../../core/rl/curriculum.ts';
import { curriculumBlob, decodeCurriculum } from '../../core/wire/curriculum.ts';
import type { Recipe } from '../../core/recipe/index.ts';
import type { Draw } from '../../core/rl/draws.ts';
import type { Head, RunLog } from '../../log/run/run-log.ts';
import type { ActivityPorts } from '../ports/index.ts';
import { curriculumOf } from '../settings.ts';

/** What it reads of a run's context. */
interface Drawing {
  readonly log: RunLog;
  readonly recipe: Recipe;
  readonly draws: (cursor: number, leavesOut?: (draw: Draw) => boolean) => readonly Draw[];
}

/**
 * The context with the draws of the next iteration. Without a curriculum, and before its first batch, it is unchanged.
 */
export async function withCurriculum<Context extends Drawing>(
  { getJsonBlob }: Pick<ActivityPorts, 'getJsonBlob'>,
  context: Context,
  head: Head | undefined,
): Promise<Context> {
  const settings = curriculumOf(context.recipe);
  const blob = head && curriculumBlob(head.counters);
  if (settings === undefined || blob === undefined) return context;
  const { log } = context;
  const state = decodeCurriculum(await getJsonBlob(log.store, log.runId, blob), blob);
  return { ...context, draws: (cursor) => context.draws(cursor, (draw) => isPassedOver(draw, state, settings)) };
}
