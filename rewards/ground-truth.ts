/** Checks of a row's ground truth. A row that cannot be scored is an error, and never the score 0. */
import { InvalidInputError } from '../core/errors.ts';
import type { ScorerInput } from './types.ts';

/** The ground truth as text; a number is written out. @throws InvalidInputError when there is none, or another type. */
export function groundTruthText(scorer: string, input: ScorerInput): string {
  const { groundTruth } = input;
  if (typeof groundTruth === 'string') return groundTruth;
  if (typeof groundTruth === 'number' && Number.isFinite(groundTruth)) return String(groundTruth);
  throw badGroundTruth(scorer, input, 'a text');
}

/** What the scorer expected in `reward_model.ground_truth`, what came, and in which row. */
export function badGroundTruth(scorer: string, input: ScorerInput, expected: string): InvalidInputError {
  const { groundTruth } = input;
  const came = groundTruth === undefined || groundTruth === null ? 'none' : shortJson(groundTruth);
  return new InvalidInputError(`${scorer} expects ${expected} as ground truth, got ${came}`, {
    where: rowName(input),
    hint: "set the row's reward_model.ground_truth, or leave the row out",
  });
}

/** The row in words: its source, and the number that its preparation gave it in `extra_info.index`. */
export function rowName({ dataSource, extraInfo }: ScorerInput): string {
  const index = typeof extraInfo === 'object' && extraInfo !== null ? Reflect.get(extraInfo, 'index') : undefined;
  return typeof index === 'number' || typeof index === 'string'
    ? `row ${index} of ${dataSource}`
    : `a row of ${dataSource}`;
}

function shortJson(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value);
  return text.length > 80 ? `${text.slice(0, 80)}…` : text;
}
