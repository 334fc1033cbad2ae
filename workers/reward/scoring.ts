/** One reward job: passes its samples to a scorer host in chunks, and repeats samples whose failure was an accident. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { PauseError } from '../../core/errors.ts';
import type { Dataset, ScorerRow } from '../../models/dataset-rows.ts';
import { stopReasons } from '../../models/trajectories.ts';
import type { Trajectories } from '../../models/trajectories.ts';
import type { ScoreFailure, ScoreOptions, ScoreOutcome, ScorerHost } from '../../rewards/host/scorer-host.ts';
import type { ScorerInput } from '../../rewards/types.ts';

/** Samples decoded or passed on before yielding to the event loop. */
const chunk = 64;
/** Failures that are more likely the machine's fault than the sample's. */
const accidents: ReadonlySet<string> = new Set<ScoreFailure>(['timeout', 'memory', 'crashed']);

const noResponse: ScoreOutcome = {
  ok: false,
  code: 'no-response',
  reason: 'poison: it crashed every worker that sampled it',
};

export interface ScoringParts {
  readonly host: ScorerHost;
  readonly trajectories: Trajectories;
  /** Sample b in the form that its scorer gets. */
  readonly sample: (b: number) => ScorerInput;
  readonly print: (line: string) => void;
  /** Kills the scorers that work for this job. */
  readonly signal: AbortSignal | undefined;
}

export class Scoring {
  readonly #parts: ScoringParts;

  constructor(parts: ScoringParts) {
    this.#parts = parts;
  }

  /** One outcome per sample of the trajectories. */
  async all(progress: (done: number) => void): Promise<ScoreOutcome[]> {
    const total = this.#parts.trajectories.row_S.length;
    const scored: ScoreOutcome[] = [];
    for (let start = 0; start < total; start += chunk) {
      const size = Math.min(chunk, total - start);
      scored.push(...(await this.#score(Array.from({ length: size }, (_, i) => start + i))));
      progress(scored.length);
      await nextTurn();
    }
    return scored;
  }

  /**
   * Scores samples again, alone, whose failure may be an accident. A deterministic run never trains on an accident's
   * outcome. @throws PauseError `ScorerAccident` when it happens again.
   */
  async withoutAccidents(outcomes: readonly ScoreOutcome[], fixHint: string): Promise<ScoreOutcome[]> {
    const settled: ScoreOutcome[] = [];
    for (const [b, first] of outcomes.entries()) {
      const outcome = isAccident(first) ? ((await this.#score([b]))[0] ?? first) : first;
      if (isAccident(outcome)) throw accident(b, outcome, fixHint);
      settled.push(outcome);
    }
    return settled;
  }

  /** A sample without a response gets no score. */
  async #score(indices: readonly number[]): Promise<ScoreOutcome[]> {
    const { host, trajectories, sample } = this.#parts;
    const sampled = indices.filter((b) => trajectories.stopReason_S[b] !== stopReasons.poison);
    const outcomes = await host.score(sampled.map(sample), this.#options(sampled));
    const byIndex = new Map(sampled.map((b, i) => [b, outcomes[i]]));
    return indices.map((b) => byIndex.get(b) ?? noResponse);
  }

  #options(sampled: readonly number[]): ScoreOptions {
    const { trajectories, print, signal } = this.#parts;
    const speaker = (i: number | undefined) =>
      i === undefined ? 'loading' : sampleName(trajectories, sampled[i] ?? -1);
    return { signal, onPrint: (line, i) => print(`scorer, ${speaker(i)}: ${line}`) };
  }
}

/** The name that `petrel samples` shows. */
function sampleName({ draw_S, row_S, samplesPerDraw }: Trajectories, b: number): string {
  return `draw ${draw_S[b]} row ${row_S[b]} #${b % samplesPerDraw}`;
}

function isAccident(outcome: ScoreOutcome): boolean {
  return !outcome.ok && accidents.has(outcome.code);
}

function accident(b: number, outcome: ScoreOutcome, fixHint: string): PauseError {
  return new PauseError(
    'ScorerAccident',
    `the scorer failed twice to score sample ${b}: ${outcome.ok ? '' : outcome.reason}`,
    {
      hint: `raise reward.timeout or reward.memory_limit_mb, or set deterministic: replay, so that such samples count as failed. If the scorer has a bug: ${fixHint}`,
    },
  );
}

/** The rows that were sampled, by their numbers. A number outside the dataset names none. */
export async function scorerRows(dataset: Dataset, row_S: Int32Array): Promise<ReadonlyMap<number, ScorerRow>> {
  const rows = [...new Set(row_S)].filter((row) => row >= 0 && row < dataset.count);
  const facts = await dataset.facts(rows);
  return new Map(facts.map((fact, i) => [rows[i] ?? -1, fact]));
}

/** The scorer's input for sample b. */
export function inputOf(
  t: Trajectories,
  rows: ReadonlyMap<number, ScorerRow>,
  b: number,
  decode: (ids: number[]) => string,
): ScorerInput {
  const row = rows.get(t.row_S[b] ?? -1);
  const response = t.responseTokens_T.subarray(t.responseOffsets_S1[b], t.responseOffsets_S1[b + 1]);
  return {
    dataSource: row?.dataSource ?? '',
    solutionStr: decode([...response]),
    groundTruth: row?.groundTruth,
    extraInfo: row?.extraInfo,
  };
}
