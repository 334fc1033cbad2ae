/** One reward job: its samples through a scorer host, in chunks, and again where an accident is no verdict. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { PauseError } from '../../core/errors.ts';
import type { DatasetFact } from '../../models/dataset-fact.ts';
import { stopReasons } from '../../models/trajectories.ts';
import type { Trajectories } from '../../models/trajectories.ts';
import type { ScoreFailure, ScoreOptions, ScoreOutcome, ScorerHost } from '../../rewards/host/scorer-host.ts';
import type { ScorerInput } from '../../rewards/types.ts';

/** Samples decoded or handed over before the event loop gets a turn. */
const chunk = 64;
/** Failures that say more about the machine than about the sample. */
const accidents: ReadonlySet<string> = new Set<ScoreFailure>(['timeout', 'memory', 'crashed']);

const noResponse: ScoreOutcome = {
  ok: false,
  code: 'no-response',
  reason: 'poison: it crashed every worker that sampled it',
};

export interface ScoringParts {
  readonly host: ScorerHost;
  readonly trajectories: Trajectories;
  /** Sample b as its scorer gets it. */
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
    const total = this.#parts.trajectories.row_B.length;
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
   * Tries again, alone, what was no verdict on the sample. A deterministic run never trains on the outcome of an accident.
   * @throws PauseError `ScorerAccident` when it happens again.
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

  /** A sample without a response has no score. */
  async #score(indices: readonly number[]): Promise<ScoreOutcome[]> {
    const { host, trajectories, sample } = this.#parts;
    const sampled = indices.filter((b) => trajectories.stopReason_B[b] !== stopReasons.poison);
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

/** As `petrel samples` names it. */
function sampleName({ draw_B, row_B, samplesPerDraw }: Trajectories, b: number): string {
  return `draw ${draw_B[b]} row ${row_B[b]} #${b % samplesPerDraw}`;
}

function isAccident(outcome: ScoreOutcome): boolean {
  return !outcome.ok && accidents.has(outcome.code);
}

function accident(b: number, outcome: ScoreOutcome, fixHint: string): PauseError {
  return new PauseError(
    'ScorerAccident',
    `the scorer gave no verdict on sample ${b}, twice: ${outcome.ok ? '' : outcome.reason}`,
    {
      hint: `Raise reward.timeout or reward.memory_limit_mb, or write deterministic: replay: such samples then count as failed. When the scorer is at fault: ${fixHint}`,
    },
  );
}

/** What a scorer is given of sample b. */
export function inputOf(
  t: Trajectories,
  dataset: DatasetFact,
  b: number,
  decode: (ids: number[]) => string,
): ScorerInput {
  const row = dataset.rows[t.row_B[b] ?? -1];
  const response = t.responseTokens_R.subarray(t.responseOffsets_B1[b], t.responseOffsets_B1[b + 1]);
  return {
    dataSource: row?.dataSource ?? '',
    solutionStr: decode([...response]),
    groundTruth: row?.groundTruth,
    extraInfo: row?.extraInfo,
  };
}
