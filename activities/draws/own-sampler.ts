/** The draws of a run with a sampler of the user's own: rows with the weight 0 are passed over. */
import { lastSampling } from '../../core/wire/own-sampler.ts';
import type { RunInputs } from '../../core/records/schema.ts';
import type { Head, RunLog } from '../../log/run/run-log.ts';
import type { ActivityPorts } from '../ports/index.ts';
import { choosesPrompts } from '../settings.ts';
import { drawnByWeight } from './weighted-draws.ts';
import type { Weighed } from './weighted-draws.ts';

/** What it reads of a run's context. */
interface Drawing extends Weighed {
  readonly log: RunLog;
  readonly inputs: RunInputs;
}

/** The context with the draws of the next iteration. Without a sampler it is unchanged. */
export async function withOwnSampler<Context extends Drawing>(
  { getJsonBlob }: Pick<ActivityPorts, 'getJsonBlob'>,
  context: Context,
  head: Head | undefined,
): Promise<Context> {
  const { log, recipe, inputs } = context;
  const { sampler, train, trainRows } = inputs;
  if (sampler === undefined) return context;
  const read = (digest: string) => getJsonBlob(log.store, log.runId, digest);
  const { weights } = await lastSampling(read, { sampler, train, trainRows }, head?.counters);
  const weightOf = ({ row }: { readonly row: number }) => weights[row] ?? 0;
  const left = { ...context, draws: (cursor: number) => context.draws(cursor, (draw) => weightOf(draw) === 0) };
  return choosesPrompts(recipe) ? drawnByWeight(left, weightOf) : left;
}
