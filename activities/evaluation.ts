/** The record of a validation, from the scores of its samples. */
import { at } from '../core/at.ts';
import { PauseError } from '../core/errors.ts';
import { recordFormat } from '../core/records/schema.ts';
import type { EvalRecord } from '../core/records/schema.ts';
import { measureMetric } from '../core/validation-measure.ts';
import type { ScoreTable } from '../core/wire/score-table.ts';
import type { Head } from '../infra/store/run-log.ts';
import type { RunRef } from './run-context.ts';
import type { ScoredRollout } from './sampling/scored-rollouts.ts';
import { joinSpans, seconds } from './spans.ts';
import { jobTimings } from './stage-timings.ts';

type Column = readonly (number | null)[];

/**
 * The mean over questions of the mean over their samples; failed samples count as wrong. It is an accuracy only when the
 * scorer returned `acc` for every sample that did not fail, otherwise a score. `n`: responses per question.
 */
export function evaluation(
  ref: RunRef,
  { term, position, weightsDigest }: Pick<Head, 'term' | 'position' | 'weightsDigest'>,
  scored: readonly ScoredRollout[],
  tables: readonly ScoreTable[],
  n: number,
): Omit<EvalRecord, 'writer'> {
  const scores = tables.flatMap((table) => table.scores);
  if (scores.length === 0)
    throw new PauseError('NothingValidated', 'the validation has no questions', { where: ref.runId });
  const columns = columnsOf(tables);
  const rightness = columns.get('acc');
  const isAccuracy = rightness !== undefined && scores.every((score, b) => score === null || at(rightness, b) !== null);
  const judged = isAccuracy ? rightness : scores;
  const accuracy = mean(judged);
  return {
    format: recordFormat,
    runId: ref.runId,
    term,
    iteration: position,
    weightsDigest,
    questions: judged.length,
    failed: judged.filter((value) => value === null).length,
    accuracy,
    metrics: {
      [measureMetric(isAccuracy ? 'accuracy' : 'score', n)]: accuracy,
      ...(isAccuracy ? { [`val-aux/score/mean@${n}`]: mean(scores) } : {}),
      ...others(columns, isAccuracy ? ['acc', 'score'] : ['score'], n),
      'val/response_tokens': scored.reduce((sum, part) => sum + part.responseTokens, 0),
    },
    timings: {
      ...jobTimings(scored),
      ...seconds('timing_s/testing', joinSpans(scored.flatMap(({ rollout, reward }) => [rollout.span, reward.span]))),
    },
    results: scored.flatMap(({ rollout, reward }) => [rollout.jobId, reward.jobId]),
  };
}

/** The scorer's columns over all tables; columns without a number are left out. */
function columnsOf(tables: readonly ScoreTable[]): Map<string, Column> {
  const names = new Set(tables.flatMap(({ columns }) => Object.keys(columns)));
  const all = [...names].map((name): [string, Column] => [
    name,
    tables.flatMap(({ scores, columns }) => columns[name] ?? scores.map(() => null)),
  ]);
  return new Map(all.filter(([, values]) => values.some((value) => value !== null)));
}

function others(columns: ReadonlyMap<string, Column>, told: readonly string[], n: number): Record<string, number> {
  const names = [...columns].filter(([name]) => !told.includes(name));
  return Object.fromEntries(
    names.map(([name, values]) => [
      `val-aux/${name.replaceAll('/', '_')}/mean@${n}`,
      mean(values.filter((value) => value !== null)),
    ]),
  );
}

function mean(values: Column): number {
  return values.reduce<number>((sum, value) => sum + (value ?? 0), 0) / values.length;
}
