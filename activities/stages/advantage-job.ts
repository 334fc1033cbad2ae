/**
 * The job that makes an iteration's batch from its scored samples, or from rows for SFT, and the one that makes the
 * values of a critic that another trainer may have. Each is derived from the records, so every caller gets the same job
 * id.
 */
import { queueOf } from '../../core/records/profile-ids.ts';
import { samplesResponses } from '../../core/run-kinds.ts';
import type { AdvantageInput } from '../../core/wire/jobs/index.ts';
import type { JobRequest } from '../../core/ports/jobs.ts';
import type { Head } from '../../log/run/run-log.ts';
import { cursorOfWave } from '../sampling/rollout-jobs.ts';
import { profileOfPart, stateOfPart } from '../term/parts.ts';
import type { ActivityPorts } from '../ports/index.ts';
import type { RunContext } from '../term/run-context.ts';
import type { ScoredRollout } from '../scored-jobs.ts';
import { algorithmSettings, trains } from '../settings.ts';
import type { Part } from '../settings.ts';

export function advantageJob(
  context: RunContext,
  head: Head,
  parts: readonly Pick<ScoredRollout, 'trajectories' | 'scores' | 'wave' | 'baseline'>[],
  ofPart: Pick<AdvantageInput, 'partState' | 'values'> = {},
): JobRequest<'advantage'> {
  const { log, recipe, inputs } = context;
  const { cursor } = head.counters;
  const waves = 1 + (parts.at(-1)?.wave ?? 0);
  const { profile } = head;
  return {
    stage: 'advantage',
    runId: log.runId,
    at: { term: head.term, iteration: head.position },
    store: log.store,
    profile: queueOf(profile),
    needs: recipe.fleet.needs.trainer,
    input: {
      kind: recipe.kind,
      iteration: head.position + 1,
      parentState: head.stateDigest,
      weights: head.weightsDigest,
      inputs,
      profile,
      ...trains(recipe),
      draws: samplesResponses(recipe.kind) ? [] : context.draws(cursor).map(({ draw, row }) => ({ draw, row })),
      parts: parts.map(({ trajectories, scores, wave, baseline }) => ({
        trajectories,
        scores,
        ...(wave > 0 && { wave }),
        ...(baseline && { baseline: { trajectories: baseline.trajectories, scores: baseline.scores } }),
      })),
      before: head.counters,
      cursorAfter: cursorOfWave(context, cursor, waves),
      algorithm: algorithmSettings(recipe, inputs),
      ...ofPart,
    },
    isNew: head.isOwn === true,
  };
}

/** The job whose values the advantage job reads. `part`: of the critic. */
export function valuesJob(
  { runStateOf }: Pick<ActivityPorts, 'runStateOf'>,
  head: Head,
  { input, ...batch }: JobRequest<'advantage'>,
  part: Part,
): JobRequest<'values'> {
  const { values: _, ...ofBatch } = input;
  const profile = profileOfPart(head, part);
  const partState = stateOfPart({ runStateOf }, head, part);
  return { ...batch, stage: 'values', profile: queueOf(profile), input: { ...ofBatch, ...part, profile, partState } };
}
