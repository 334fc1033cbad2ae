/** One reward job: passes its samples to a scorer host in chunks, and repeats samples whose failure was an accident. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { at } from '../../core/at.ts';
import { PauseError } from '../../core/errors.ts';
import type { Dataset, ScorerRow } from '../../models/dataset-rows.ts';
import type { BatchTokenizer } from '../../models/tokenizer.ts';
import { groupsOf, stopReasons } from '../../models/trajectories.ts';
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
  /** The outcome of a sample that was, or is being, scored ahead; it may still turn out that there is none. */
  readonly ahead?: (b: number) => Promise<ScoreOutcome | undefined> | undefined;
  /** Kills the scorers that work for this job. */
  readonly signal: AbortSignal | undefined;
  /** The host scores all responses to a prompt in one call. */
  readonly lists?: boolean | undefined;
}

export class Scoring {
  readonly #parts: ScoringParts;
  /** What one call scores: a sample, or all responses to a prompt. */
  readonly #groups: readonly (readonly number[])[];
  #scoredAhead = 0;

  constructor(parts: ScoringParts) {
    const { lists, trajectories } = parts;
    this.#parts = parts;
    this.#groups = lists === true ? groupsOf(trajectories) : Array.from(trajectories.row_S, (_, b) => [b]);
  }

  /** Number of samples whose outcomes were there already. */
  get scoredAhead(): number {
    return this.#scoredAhead;
  }

  /** One outcome per sample of the trajectories. */
  async all(progress: (done: number) => void): Promise<ScoreOutcome[]> {
    const scored: ScoreOutcome[] = [];
    for (const indices of this.#chunks(chunk)) {
      scored.push(...(await this.#scoreRest(indices)));
      progress(scored.length);
      await nextTurn();
    }
    return scored;
  }

  /** Neighbouring groups, together of at least `size` samples. */
  #chunks(size: number): readonly number[][] {
    const chunks: number[][] = [];
    for (const group of this.#groups) {
      const last = chunks.at(-1);
      if (last !== undefined && last.length < size) last.push(...group);
      else chunks.push([...group]);
    }
    return chunks;
  }

  /**
   * Scores samples again, one call after the other, whose failure may be an accident. A deterministic run never trains
   * on an accident's outcome. @throws PauseError `ScorerAccident` when it happens again.
   */
  async withoutAccidents(outcomes: readonly ScoreOutcome[], fixHint: string): Promise<ScoreOutcome[]> {
    const settled: ScoreOutcome[] = [];
    for (const indices of this.#groups) {
      const first = indices.map((b) => at(outcomes, b));
      const second = first.some(isAccident) ? await this.#score(indices) : first;
      for (const [i, outcome] of second.entries())
        if (isAccident(outcome)) throw accident(at(indices, i), outcome, fixHint);
      settled.push(...second);
    }
    return settled;
  }

  /** Scores the samples that were not scored ahead. */
  async #scoreRest(indices: readonly number[]): Promise<ScoreOutcome[]> {
    const ahead = new Map(indices.map((b) => [b, this.#parts.ahead?.(b)]));
    const scored = new Map<number, ScoreOutcome>();
    const score = async (some: readonly number[]) => {
      const outcomes = some.length === 0 ? [] : await this.#score(some);
      for (const [i, b] of some.entries()) scored.set(b, at(outcomes, i));
    };
    const take = async ([b, given]: readonly [number, Promise<ScoreOutcome | undefined> | undefined]) => {
      const outcome = await given;
      if (outcome !== undefined) scored.set(b, outcome);
    };
    await Promise.all([score(indices.filter((b) => ahead.get(b) === undefined)), ...[...ahead].map(take)]);
    this.#scoredAhead += [...ahead].filter(([b, given]) => given !== undefined && scored.has(b)).length;
    await score(indices.filter((b) => !scored.has(b)));
    return indices.map((b) => scored.get(b) ?? noOutcome(b));
  }

  /** A sample without a response gets no score. */
  async #score(indices: readonly number[]): Promise<ScoreOutcome[]> {
    const { host, trajectories, samples } = this.#parts;
    const sampled = indices.filter((b) => trajectories.stopReason_S[b] !== stopReasons.poison);
    const byIndex = new Map<number, ScoreOutcome>();
    const call = async (some: readonly number[]) => {
      const outcomes = await host.score(await samples(some), this.#options(some));
      for (const [i, b] of some.entries()) byIndex.set(b, at(outcomes, i));
    };
    await Promise.all((this.#parts.lists === true ? this.#byDraw(sampled) : [sampled]).map(call));
    return indices.map((b) => byIndex.get(b) ?? noResponse);
  }

  #byDraw(indices: readonly number[]): readonly number[][] {
    const wanted = new Set(indices);
    const groups = this.#groups.map((group) => group.filter((b) => wanted.has(b)));
    return groups.filter(({ length }) => length > 0);
  }

  #options(sampled: readonly number[]): ScoreOptions {
    const { trajectories, print, signal } = this.#parts;
    const speaker = (i: number | undefined) => (i === undefined ? 'loading' : sampleName(trajectories, at(sampled, i)));
    return { signal, onPrint: (line, i) => print(`scorer, ${speaker(i)}: ${line}`) };
  }
}

function noOutcome(b: number): never {
  throw new RangeError(`no outcome for sample ${b}`);
}

function sampleName({ draw_S, row_S, session_S }: Trajectories, b: number): string {
  return nameOfSample(at(draw_S, b), at(row_S, b), at(session_S, b));
}

/** The name that `petrel samples` shows. */
export const nameOfSample = (draw: number, row: number, sample: number): string => `draw ${draw} row ${row} #${sample}`;

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
export async function scorerRows(dataset: Dataset, row_S: Iterable<number>): Promise<ReadonlyMap<number, ScorerRow>> {
  const rows = [...new Set(row_S)];
  const facts = await dataset.facts(rows);
  return new Map(rows.map((row, i) => [row, at(facts, i)]));
}

export interface SampledTexts {
  readonly trajectories: Trajectories;
  readonly rows: ReadonlyMap<number, ScorerRow>;
  readonly tokenizer: BatchTokenizer;
  /** Does the scorer get the prompts? */
  readonly withPrompts?: boolean;
}

/** The scorer's input for each of these samples. */
export function inputsOf(
  { trajectories: t, rows, tokenizer, withPrompts = false }: SampledTexts,
  indices: readonly number[],
): Promise<ScorerInput[]> {
  const responses = indices.map((b) =>
    t.responseTokens_T.slice(at(t.responseOffsets_S1, b), at(t.responseOffsets_S1, b + 1)),
  );
  return scorerInputs({ rows, tokenizer, withPrompts }, responses, (i) => at(t.row_S, at(indices, i)));
}

/** The scorer's input for each response. `rowOf`: the row of a response, by its place. */
export async function scorerInputs(
  { rows, tokenizer, withPrompts }: Omit<SampledTexts, 'trajectories'>,
  responses: readonly Int32Array[],
  rowOf: (i: number) => number,
): Promise<ScorerInput[]> {
  const texts = await tokenizer.decodeBatch(responses, { skipSpecial: true });
  return responses.map((_, i) => {
    const row = rows.get(rowOf(i));
    if (row === undefined) throw new RangeError(`a sample is of row ${rowOf(i)}, which was not read`);
    return {
      dataSource: row.dataSource,
      solutionStr: at(texts, i),
      groundTruth: row.groundTruth,
      extraInfo: row.extraInfo,
      ...(withPrompts === true && { prompt: promptText(row.prompt) }),
    };
  });
}

/** Text of a chat with several messages, each with its role. */
function promptText(prompt: ScorerRow['prompt']): string {
  if (typeof prompt === 'string') return prompt;
  const text = (content: unknown) => (typeof content === 'string' ? content : (JSON.stringify(content) ?? ''));
  const [only, ...others] = prompt;
  if (only !== undefined && others.length === 0) return text(only.content);
  return prompt.map(({ role, content }) => `${role}: ${text(content)}`).join('\n\n');
}
