/**
 * The job that makes an iteration's batch from its scored samples, or from rows for SFT. It is derived from the
 * records, so every caller gets the same job id.
 */
import { cursorAfter } from '../core/rl/draws.ts';
import type { JobRequest } from '../infra/nats/dispatcher.ts';
import type { Head } from '../infra/store/run-log.ts';
import type { RunContext } from './run-context.ts';
import { algorithmSettings, trains } from './settings.ts';

export function advantageJob(
  { log, recipe, inputs, draws: drawsFrom }: RunContext,
  head: Head,
  parts: readonly { readonly trajectories: string; readonly scores: string }[],
): JobRequest<'advantage'> {
  const draws = drawsFrom(head.counters.cursor);
  const { profile } = head;
  return {
    stage: 'advantage',
    runId: log.runId,
    at: { term: head.term, iteration: head.position },
    store: log.store,
    profile: profile.id,
    input: {
      kind: recipe.kind,
      iteration: head.position + 1,
      parentState: head.stateDigest,
      weights: head.weightsDigest,
      inputs,
      profile,
      ...trains(recipe),
      draws: recipe.kind === 'sft' ? draws.map(({ draw, row }) => ({ draw, row })) : [],
      parts: parts.map(({ trajectories, scores }) => ({ trajectories, scores })),
      before: head.counters,
      cursorAfter: cursorAfter(head.counters.cursor, draws),
      algorithm: algorithmSettings(recipe, inputs),
    },
  };
}
