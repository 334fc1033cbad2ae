/** Scored trajectories as one list of samples in draw order, and the outcome of each draw. */
import { at } from '../../core/at.ts';
import { PauseError } from '../../core/errors.ts';
import { fixScorerHint } from '../../core/scorer-hint.ts';
import type { DrawRecord } from '../../core/records/schema.ts';
import type { AdvantageInput } from '../../core/wire/jobs.ts';
import type { ScoreTable } from '../../core/wire/score-table.ts';
import type { Trajectories } from '../../models/trajectories.ts';

export interface Sample {
  readonly draw: number;
  readonly row: number;
  readonly prompt: Int32Array;
  readonly response: Int32Array;
  readonly rolloutLogProbs: Float32Array;
  /** 1: the policy made this token of the response. */
  readonly mask: Uint8Array;
  readonly score: number;
  readonly stopReason: number;
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

export interface ScoredPart {
  readonly trajectories: Trajectories;
  readonly scores: ScoreTable;
}

/** A group needs two valid samples for an advantage. A smaller one is filtered. */
const smallestGroup = 2;

/** @throws PauseError `TooManyFailedSamples` beyond maxFailedFraction. */
export function compose(input: AdvantageInput, parts: readonly ScoredPart[], runId: string): Composition {
  const samples: Sample[] = [];
  const draws: DrawRecord[] = [];
  let failed = 0;
  let total = 0;
  for (const { trajectories, scores } of parts) {
    const n = trajectories.samplesPerDraw;
    for (let d = 0; d * n < trajectories.draw_S.length; d++) {
      const members = Array.from({ length: n }, (_, i) => d * n + i);
      const valid = members.filter((b) => at(scores.scores, b) !== null);
      failed += n - valid.length;
      total += n;
      const used = valid.length >= Math.min(smallestGroup, n);
      const indices = new Map(valid.map((b, i) => [b, samples.length + i]));
      if (used) samples.push(...valid.map((b) => sampleAt(trajectories, scores, b, d)));
      draws.push({
        draw: at(trajectories.draw_S, d * n),
        row: at(trajectories.row_S, d * n),
        fate: used ? 'trained' : 'filtered',
        ...(used ? {} : { reason: `${valid.length} of ${n} samples are valid` }),
        samples: members.map((b) => (used ? indices.get(b) : undefined) ?? failureOf(scores, b)),
      });
    }
  }
  if (total > 0 && failed / total > input.algorithm.maxFailedFraction)
    throw tooManyFailed(failed, total, input, parts, runId);
  return { samples, draws, failed, total };
}

function sampleAt(t: Trajectories, scores: ScoreTable, b: number, d: number): Sample {
  const prompt = t.promptTokens.subarray(at(t.promptOffsets_G1, d), at(t.promptOffsets_G1, d + 1));
  const [start, end] = [at(t.responseOffsets_S1, b), at(t.responseOffsets_S1, b + 1)];
  return {
    draw: at(t.draw_S, b),
    row: at(t.row_S, b),
    prompt,
    response: t.responseTokens_T.subarray(start, end),
    rolloutLogProbs: t.logProbs_T.subarray(start, end),
    mask: t.mask_T.subarray(start, end),
    score: validScore(scores, b),
    stopReason: at(t.stopReason_S, b),
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

function failureOf(scores: ScoreTable, b: number): string {
  return at(scores.reasons, b) ?? 'its group was filtered';
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
