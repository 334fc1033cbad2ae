/** Rows to token ids in memory, all at once: chat template, tokenizer, limits. For datasets of format 1. */
import { at } from '../../core/at.ts';
import { InvalidInputError } from '../../core/errors.ts';
import type { RowKind } from '../../core/run-kinds.ts';
import type { DatasetFact, RowFact } from '../dataset-fact.ts';
import type { BatchTokenizer } from '../tokenizer.ts';
import { atLimit, overlong } from './limit.ts';
import { rowError } from './raw.ts';
import { RowRenderer, templateOf } from './render.ts';
import type { LostText } from './lost-text.ts';
import type { Row } from './rows.ts';
import type { Truncation } from './truncate.ts';

export interface TokenizeOptions {
  readonly kind: RowKind;
  /** Tokens: of the prompt (rl), of prompt and response together (sft, and each response of pairs). */
  readonly maxLength: number;
  readonly truncation: Truncation;
  /** Leave rows over the limit out instead. */
  readonly filterOverlong: boolean;
  /** Use only the first rows; negative: all. */
  readonly maxSamples: number;
  /** `none`: prompts must be text. */
  readonly chatTemplate: 'auto' | 'none';
  /** A chat template in place of the tokenizer's own. */
  readonly template?: string;
  readonly templateKwargs?: Readonly<Record<string, unknown>>;
  /** What the template's clock says: `2026-01-02T03:04:05`. */
  readonly now?: string;
}

export interface RowCounts {
  readonly rows: number;
  /** Rows left out because they were over the limit. */
  readonly filtered: number;
  readonly truncated: number;
  /** Tokens of the longest row before filtering and truncation. */
  readonly longest: number;
  /** What the tokenizer drops of the first rows. */
  readonly lost?: LostText;
}

export interface TokenizedRows {
  readonly dataset: DatasetFact;
  readonly counts: RowCounts;
}

/** Rows tokenised in one call of the library. */
const batchRows = 256;

/** Throws InvalidInputError with file and row: a template that refuses, a prompt over the limit, nothing left. */
export async function tokenizeRows(
  rows: AsyncIterable<Row>,
  tokenizer: BatchTokenizer,
  options: TokenizeOptions,
): Promise<TokenizedRows> {
  const writer = new DatasetWriter(options);
  const renderer = new RowRenderer(tokenizer, { ...options, template: templateOf(tokenizer, options) });
  let batch: Row[] = [];
  let taken = 0;
  const flush = async (): Promise<void> => {
    const texts = batch.map((row) => renderer.render(row, (...why) => rowError(row, ...why)));
    const prompts = await tokenizer.encodeBatch(texts.map(({ prompt }) => prompt));
    const responses =
      options.kind === 'sft' ? await tokenizer.encodeBatch(texts.map(({ responses }) => responses[0] ?? '')) : [];
    for (const [i, row] of batch.entries()) {
      const response = options.kind === 'sft' ? at(responses, i) : undefined;
      writer.add(row, at(texts, i).prompt, at(prompts, i), response);
    }
    batch = [];
  };
  for await (const row of rows) {
    if (options.maxSamples >= 0 && taken >= options.maxSamples) break;
    taken++;
    batch.push(row);
    if (batch.length === batchRows) await flush();
  }
  await flush();
  return writer.finish();
}

class DatasetWriter {
  readonly #options: TokenizeOptions;
  readonly #rows: RowFact[] = [];
  readonly #prompts: Int32Array[] = [];
  readonly #responses: Int32Array[] = [];
  #filtered = 0;
  #truncated = 0;
  #longest = 0;

  constructor(options: TokenizeOptions) {
    this.#options = options;
  }

  add(row: Row, promptText: string, prompt: Int32Array, response: Int32Array | undefined): void {
    const { kind, maxLength, truncation, filterOverlong } = this.#options;
    const length = prompt.length + (response?.length ?? 0);
    this.#longest = Math.max(this.#longest, length);
    if (prompt.length === 0) throw rowError(row, 'the prompt has no tokens');
    if (length <= maxLength) return this.#keep(row, promptText, prompt, response);
    if (filterOverlong) {
      this.#filtered++;
      return;
    }
    if (truncation === 'error') throw overlong((...why) => rowError(row, ...why), kind, length, maxLength);
    this.#truncated++;
    const cut = atLimit({ prompt, ...(response && { response }) }, maxLength, truncation);
    this.#keep(row, promptText, cut.prompt, cut.response);
  }

  finish(): TokenizedRows {
    const counts = {
      rows: this.#rows.length,
      filtered: this.#filtered,
      truncated: this.#truncated,
      longest: this.#longest,
    };
    if (counts.rows === 0) throw noRows(counts, this.#options.maxLength);
    const [promptTokens, promptOffsets] = join(this.#prompts);
    if (this.#options.kind !== 'sft') return { dataset: { rows: this.#rows, promptTokens, promptOffsets }, counts };
    const [responseTokens, responseOffsets] = join(this.#responses);
    return { dataset: { rows: this.#rows, promptTokens, promptOffsets, responseTokens, responseOffsets }, counts };
  }

  #keep(row: Row, promptText: string, prompt: Int32Array, response: Int32Array | undefined): void {
    const { dataSource, groundTruth, extraInfo } = row;
    this.#rows.push({
      dataSource,
      prompt: promptText,
      ...(groundTruth === undefined ? {} : { groundTruth }),
      ...(extraInfo === undefined ? {} : { extraInfo }),
    });
    this.#prompts.push(prompt);
    if (response !== undefined) this.#responses.push(response);
  }
}

/** What to say when a recipe's files leave nothing to train on. */
export function noRows({ filtered, longest }: RowCounts, maxLength: number): InvalidInputError {
  const why =
    filtered > 0
      ? `all ${filtered} are over the limit of ${maxLength} tokens (longest: ${longest})`
      : 'there were none';
  return new InvalidInputError(`no rows are left: ${why}`);
}

/** All sequences in a row, and where each begins; one offset more than sequences. */
function join(sequences: readonly Int32Array[]): [Int32Array, Int32Array] {
  const offsets = new Int32Array(sequences.length + 1);
  for (const [i, sequence] of sequences.entries()) offsets[i + 1] = at(offsets, i) + sequence.length;
  const tokens = new Int32Array(at(offsets, -1));
  for (const [i, sequence] of sequences.entries()) tokens.set(sequence, at(offsets, i));
  return [tokens, offsets];
}
