/** Scored trajectories as one list of samples in draw order, and the outcome of each draw. */
import { at } from '../../../core/at.ts';
import { PauseError } from '../../../core/errors.ts';
import { reasonToFilter } from '../../../core/rl/filter-groups.ts';
import { passingFirst, reasonNotToPass } from '../../../core/rl/prime-filter.ts';
import { fixScorerHint } from '../../../core/scorer-hint.ts';
import type { DrawRecord } from '../../../core/records/schema.ts';
import type { AdvantageInput } from '../../../core/wire/jobs/index.ts';
import { columnsOfTokens } from '../../../core/token-columns.ts';
import type { TokenColumns } from '../../../core/token-columns.ts';
import { numbersNamed } from '../../../core/wire/score-table.ts';
import type { ScoreTable } from '../../../core/wire/score-table.ts';
import { groupsOf as groupsIn, promptOf } from '../../../models/trajectories.ts';
import type { Trajectories } from '../../../models/trajectories.ts';

export interface Sample {
  readonly draw: number;
  readonly row: number;
  readonly prompt: Int32Array;
  readonly response: Int32Array;
  readonly rolloutLogProbs: Float32Array;
  /** 1: the policy made this token of the response. */
  readonly mask: Uint8Array;
  /** Other numbers of each token of the response, by name. */
  readonly tokenColumns?: TokenColumns;
  readonly score: number;
  readonly stopReason: number;
  /** Score of a greedy response to the prompt; where the estimator reads it. */
  readonly baseline?: number;
  /** Numbers that the scorer gave beside the score. */
  readonly columns: Readonly<Record<string, number>>;
}

export interface Composition {
  /** Samples that are trained on, draw by draw. */
  readonly samples: readonly Sample[];
  readonly draws: readonly DrawRecord[];
  readonly failed: number;
  readonly total: number;
}

/** The part of trajectories that a batch is made from. */
export type SampledTrajectories = Pick<Trajectories, (typeof ofSamples)[number]>;

const ofSamples = [
  'drawOffsets_G1',
  'draw_S',
  'row_S',
  'promptTokens',
  'promptOffsets_P1',
  'prompt_S',
  'responseTokens_T',
  'responseOffsets_S1',
  'logProbs_T',
  'mask_T',
  'tokenColumns',
  'stopReason_S',
] as const;

/** The rest of trajectories, half of their bytes, is not kept in memory. */
export const sampledOf = (trajectories: Trajectories): SampledTrajectories =>
  Object.fromEntries(ofSamples.map((name) => [name, trajectories[name]])) as SampledTrajectories;

/** Responses to some draws, with their scores. */
export interface ScoredResponses {
  readonly trajectories: SampledTrajectories;
  readonly scores: ScoreTable;
}

/** Which draw and row each score belongs to. */
export interface ScoredDraws {
  readonly trajectories: Pick<Trajectories, 'drawOffsets_G1' | 'draw_S' | 'row_S'>;
  readonly scores: ScoreTable;
}

export interface ScoredPart extends ScoredResponses {
  readonly wave: number;
  /** Greedy responses to the same draws, one each. */
  readonly baseline?: Pick<ScoredResponses, 'scores'>;
}

/** All samples of one draw. */
interface Group {
  readonly part: ScoredPart;
  /** Number of the draw in its part. */
  readonly d: number;
  readonly members: readonly number[];
  /** What the filter reads of each; null: no score. */
  readonly values: readonly (number | null)[];
}

/**
 * The first groups that pass the filter, as many as a batch has; without dynamic sampling or oversampling all.
 * @throws PauseError `TooManyFailedSamples` beyond maxFailedFraction. */
export function compose(input: AdvantageInput, parts: readonly ScoredPart[], runId: string): Composition {
  const samples: Sample[] = [];
  const draws: DrawRecord[] = [];
  let failed = 0;
  let total = 0;
  const { filterGroups: filter } = input.algorithm;
  let room = filter?.prompts ?? Number.POSITIVE_INFINITY;
  const groups = groupsOf(parts, filter?.metric);
  const { oversampling } = input.algorithm;
  const chosen = oversampling && outcomesOfOversampling(groups, oversampling);
  for (const [g, { part, d, members, values }] of groups.entries()) {
    const { trajectories, scores, wave } = part;
    const valid = members.filter((b) => at(scores.scores, b) !== null);
    const baseline = part.baseline?.scores.scores[d];
    failed += members.length - valid.length + (baseline === null ? 1 : 0);
    total += members.length + (baseline === undefined ? 0 : 1);
    const outcome = chosen?.[g] ?? (baseline === null ? noBaseline(part, d) : outcomeOf(values, filter?.metric, room));
    const isUsed = outcome.fate === 'trained';
    const indices = new Map(valid.map((b, i) => [b, samples.length + i]));
    if (isUsed) {
      room -= 1;
      samples.push(...valid.map((b) => sampleAt(part, b, d)));
    }
    draws.push({
      draw: at(trajectories.draw_S, at(members, 0)),
      row: at(trajectories.row_S, at(members, 0)),
      ...outcome,
      ...(wave > 0 && { wave }),
      samples: members.map((b) => (isUsed ? indices.get(b) : undefined) ?? failureOf(scores, b, outcome)),
    });
  }
  if (total > 0 && failed / total > input.algorithm.maxFailedFraction)
    throw tooManyFailed(failed, total, input, parts, runId);
  return { samples, draws, failed, total };
}

function groupsOf(parts: readonly ScoredPart[], metric = 'score'): Group[] {
  return parts.flatMap((part) => {
    const values = numbersNamed(part.scores, metric);
    return groupsIn(part.trajectories).map((members, d) => ({
      part,
      d,
      members,
      values: members.map((b) => at(values, b)),
    }));
  });
}

type DrawOutcome = Pick<DrawRecord, 'fate' | 'reason'>;

function noBaseline({ baseline }: ScoredPart, d: number): DrawOutcome {
  return { fate: 'filtered', reason: `its greedy response has no score: ${baseline?.scores.reasons[d] ?? 'unknown'}` };
}

/** `room`: groups that the batch still takes. */
function outcomeOf(values: readonly (number | null)[], metric: string | undefined, room: number): DrawOutcome {
  const reason = reasonToFilter(values, metric);
  if (reason !== undefined) return { fate: 'filtered', reason };
  return room > 0 ? { fate: 'trained' } : { fate: 'surplus', reason: 'the batch was full' };
}

/**
 * Outcomes with oversampling: groups that pass are trained on first, then the others; a surplus one has passed. A group
 * without enough scores has no outcome here.
 */
function outcomesOfOversampling(
  groups: readonly Group[],
  { prompts, ...filter }: NonNullable<AdvantageInput['algorithm']['oversampling']>,
): (DrawOutcome | undefined)[] {
  const usable = [...groups.keys()].filter((g) => {
    const { part, d, values } = at(groups, g);
    return part.baseline?.scores.scores[d] !== null && reasonToFilter(values) === undefined;
  });
  const reasons = usable.map((g) => reasonNotToPass(...accuraciesAndLengths(at(groups, g)), filter));
  const outcomes: (DrawOutcome | undefined)[] = groups.map(() => undefined);
  passingFirst(reasons.map((reason) => reason === undefined)).forEach((u, place) => {
    const reason = reasons[u];
    const left: DrawOutcome =
      reason === undefined ? { fate: 'surplus', reason: 'the batch was full' } : { fate: 'filtered', reason };
    outcomes[at(usable, u)] = place < prompts ? { fate: 'trained' } : left;
  });
  return outcomes;
}

/** Two lists of the members with a score: the column `acc`, or else the score; and the tokens of the response. */
function accuraciesAndLengths({ part, members }: Group): [number[], number[]] {
  const { scores, trajectories } = part;
  const valid = members.filter((b) => at(scores.scores, b) !== null);
  return [
    valid.map((b) => scores.columns['acc']?.[b] ?? validScore(scores, b)),
    members.map((b) => at(trajectories.responseOffsets_S1, b + 1) - at(trajectories.responseOffsets_S1, b)),
  ];
}

function sampleAt({ trajectories: t, scores, baseline }: ScoredPart, b: number, d: number): Sample {
  const [start, end] = [at(t.responseOffsets_S1, b), at(t.responseOffsets_S1, b + 1)];
  return {
    draw: at(t.draw_S, b),
    row: at(t.row_S, b),
    prompt: promptOf(t, b),
    response: t.responseTokens_T.subarray(start, end),
    rolloutLogProbs: t.logProbs_T.subarray(start, end),
    mask: t.mask_T.subarray(start, end),
    tokenColumns: columnsOfTokens(t.tokenColumns, start, end),
    score: validScore(scores, b),
    stopReason: at(t.stopReason_S, b),
    ...(baseline && { baseline: validScore(baseline.scores, d) }),
    columns: columnsAt(scores, b),
  };
}

function validScore({ scores }: ScoreTable, b: number): number {
  const score = at(scores, b);
  if (score === null) throw new RangeError(`sample ${b} has no score`);
  return score;
}

function columnsAt({ columns }: ScoreTable, b: number): Record<string, number> {
  const given = Object.entries(columns).map(([name, values]) => [name, values[b]] as const);
  return Object.fromEntries(given.filter((entry): entry is [string, number] => typeof entry[1] === 'number'));
}

function failureOf(scores: ScoreTable, b: number, { fate }: DrawOutcome): string {
  return at(scores.reasons, b) ?? (fate === 'surplus' ? 'the batch was full' : 'its group was filtered');
}

function tooManyFailed(
  failed: number,
  total: number,
  input: AdvantageInput,
  parts: readonly ScoredPart[],
  runId: string,
): PauseError {
  const reasons = parts.flatMap(({ scores }) => scores.reasons.filter((reason) => reason !== null));
  return new PauseError(
    'TooManyFailedSamples',
    `${failed} of ${total} samples of iteration ${input.iteration} could not be scored; the limit is ${input.algorithm.maxFailedFraction}. First: ${reasons[0] ?? 'unknown'}`,
    {
      where: `iteration ${input.iteration}`,
      hint: `${fixScorerHint(runId, input.inputs.scorer)} (these samples are scored again); when only what the scorer calls was away: petrel resume ${runId} ; or raise reward.max_failed_fraction`,
    },
  );
}
