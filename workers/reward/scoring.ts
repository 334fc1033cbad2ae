/** One reward job: passes its samples to a scorer host in chunks, and repeats samples whose failure was an accident. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { at } from '../../core/at.ts';
import { PauseError } from '../../core/errors.ts';
import type { Dataset, ScorerRow } from '../../models/dataset-rows.ts';
import type { BatchTokenizer } from '../../models/tokenizer.ts';
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
  /** Samples in the form that their scorer gets. */
  readonly samples: (indices: readonly number[]) => Promise<ScorerInput[]>;
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
      const outcome = isAccident(first) ? at(await this.#score([b]), 0) : first;
      if (isAccident(outcome)) throw accident(b, outcome, fixHint);
      settled.push(outcome);
    }
    return settled;
  }

  /** A sample without a response gets no score. */
  async #score(indices: readonly number[]): Promise<ScoreOutcome[]> {
    const { host, trajectories, samples } = this.#parts;
    const sampled = indices.filter((b) => trajectories.stopReason_S[b] !== stopReasons.poison);
    const outcomes = await host.score(await samples(sampled), this.#options(sampled));
    const byIndex = new Map(sampled.map((b, i) => [b, at(outcomes, i)]));
    return indices.map((b) => byIndex.get(b) ?? noResponse);
  }

  #options(sampled: readonly number[]): ScoreOptions {
    const { trajectories, print, signal } = this.#parts;
    const speaker = (i: number | undefined) => (i === undefined ? 'loading' : sampleName(trajectories, at(sampled, i)));
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

/** The rows that were sampled, by their numbers. Throws RangeError for a number outside the dataset. */
export async function scorerRows(dataset: Dataset, row_S: Int32Array): Promise<ReadonlyMap<number, ScorerRow>> {
  const rows = [...new Set(row_S)];
  const facts = await dataset.facts(rows);
  return new Map(rows.map((row, i) => [row, at(facts, i)]));
}

export interface SampledTexts {
  readonly trajectories: Trajectories;
  readonly rows: ReadonlyMap<number, ScorerRow>;
  readonly tokenizer: BatchTokenizer;
}

/** The scorer's input for each of these samples. */
export async function inputsOf(
  { trajectories: t, rows, tokenizer }: SampledTexts,
  indices: readonly number[],
): Promise<ScorerInput[]> {
  const responses = indices.map((b) =>
    t.responseTokens_T.slice(at(t.responseOffsets_S1, b), at(t.responseOffsets_S1, b + 1)),
  );
  const texts = await tokenizer.decodeBatch(responses, { skipSpecial: true });
  return indices.map((b, i) => {
    const row = rows.get(at(t.row_S, b));
    if (row === undefined) throw new RangeError(`sample ${b} is of row ${t.row_S[b]}, which was not read`);
    return {
      dataSource: row.dataSource,
      solutionStr: at(texts, i),
      groundTruth: row.groundTruth,
      extraInfo: row.extraInfo,
    };
  });
}
