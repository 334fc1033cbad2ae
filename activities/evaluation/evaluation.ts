/** The record of a validation, from the scores of its samples. */
import { PauseError } from '../../core/errors.ts';
import { recordFormat } from '../../core/records/schema.ts';
import type { EvalRecord } from '../../core/records/schema.ts';
import type { ScoreTable } from '../../core/wire/score-table.ts';
import type { Head } from '../../log/run/run-log.ts';
import type { RunRef } from '../term/run-context.ts';
import type { ScoredRollout } from '../scored-jobs.ts';
import { joinSpans, seconds } from '../spans.ts';
import { jobTimings } from '../sampling/stage-timings.ts';
import { accOf, isJudged, metricsOf, promptsIn } from './validation-prompts.ts';

/**
 * Evaluates sampled responses: `accuracy` is the mean over all responses; failed ones count as wrong. It is an accuracy
 * only when the scorer returned `acc` for every response that did not fail, otherwise a score. `n`: responses per
 * question where a table does not say.
 */
export async function evaluation(
  ref: RunRef,
  { term, position, weightsDigest }: Pick<Head, 'term' | 'position' | 'weightsDigest'>,
  scored: readonly ScoredRollout[],
  tables: readonly ScoreTable[],
  n: number,
): Promise<Omit<EvalRecord, 'writer'>> {
  const prompts = tables.flatMap((table) => promptsIn(table, n));
  if (prompts.length === 0)
    throw new PauseError('NothingValidated', 'the validation has no questions', { where: ref.runId });
  const isAccuracy = isJudged(prompts);
  const judged = prompts.flatMap((prompt) => (isAccuracy ? accOf(prompt) : prompt.scores));
  return {
    format: recordFormat,
    runId: ref.runId,
    term,
    iteration: position,
    weightsDigest,
    questions: judged.length,
    failed: judged.filter((value) => value === null).length,
    accuracy: judged.reduce<number>((sum, value) => sum + (value ?? 0), 0) / judged.length,
    metrics: {
      ...(await metricsOf(prompts)),
      'val/response_tokens': scored.reduce((sum, part) => sum + part.responseTokens, 0),
    },
    timings: {
      ...jobTimings(scored),
      ...seconds('timing_s/testing', joinSpans(scored.flatMap(({ rollout, reward }) => [rollout.span, reward.span]))),
    },
    results: scored.flatMap(({ rollout, reward }) => [rollout.jobId, reward.jobId]),
  };
}
