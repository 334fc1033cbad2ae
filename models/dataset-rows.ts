/**
 * Rows of a stored dataset by their numbers, whatever its format. Format 1 holds rendered and tokenised rows in one
 * piece; format 2 holds blocks of rows that are rendered and tokenised when they are asked for, with the same outcome.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { at } from '../core/at.ts';
import { InvalidInputError } from '../core/errors.ts';
import type { DatasetBlock, DatasetIndex } from '../core/records/dataset-index.ts';
import type { DatasetFact } from './dataset-fact.ts';
import { decodeDataset, promptOf, responseOf } from './dataset-fact.ts';
import type { Block, BlockCache } from './dataset/blocks.ts';
import { atLimit, lengthOf, overlong } from './dataset/limit.ts';
import type { Sequence } from './dataset/limit.ts';
import { RowRenderer } from './dataset/render.ts';
import type { RowFault, RowTexts } from './dataset/render.ts';
import { decodeRow } from './dataset/stored-row.ts';
import type { StoredRow } from './dataset/stored-row.ts';
import { misshapen } from './shape-check.ts';
import type { BatchTokenizer } from './tokenizer.ts';

export { BlockCache } from './dataset/blocks.ts';
export type { Sequence } from './dataset/limit.ts';

/** What a scorer is given of a row. */
export type ScorerRow = Pick<StoredRow, 'dataSource' | 'prompt' | 'groundTruth' | 'extraInfo'>;

/** Rows are numbered from 0. A number outside the dataset is a RangeError. */
export interface Dataset {
  readonly count: number;
  /** No prompt has more tokens. */
  readonly longestPrompt: number;
  /** Facts in the order of `rows`. */
  facts(rows: readonly number[]): Promise<ScorerRow[]>;
  /** Prompts as rendered by the chat template, before tokenisation. */
  prompts(rows: readonly number[], tokenizer: BatchTokenizer): Promise<string[]>;
  /** Rows as tokens, cut at the limit. */
  sequences(rows: readonly number[], tokenizer: BatchTokenizer): Promise<Sequence[]>;
}

/** A dataset's objects in a store. Every reader checks the bytes against the dataset's name. */
export type StoredDataset =
  | { readonly format: 1; readonly name: string; readonly tokens: Uint8Array; readonly rows: Uint8Array }
  | {
      readonly format: 2;
      readonly name: string;
      readonly index: DatasetIndex;
      readonly block: (block: DatasetBlock) => Promise<Uint8Array>;
    };

/** Throws PauseError `DamagedRecord` when rows of format 1 are not what they should be. */
export function openDataset(stored: StoredDataset, cache: BlockCache): Dataset {
  return stored.format === 1
    ? new WholeDataset(decodeDataset(stored.tokens, stored.rows, stored.name))
    : new BlockDataset(stored, cache);
}

class WholeDataset implements Dataset {
  readonly #fact: DatasetFact;
  readonly count: number;
  readonly longestPrompt: number;

  constructor(fact: DatasetFact) {
    this.#fact = fact;
    this.count = fact.rows.length;
    this.longestPrompt = fact.promptOffsets.reduce(
      (longest, end, i, ends) => (i === 0 ? longest : Math.max(longest, end - at(ends, i - 1))),
      0,
    );
  }

  async facts(rows: readonly number[]): Promise<ScorerRow[]> {
    return rows.map((row) => this.#row(row));
  }

  async prompts(rows: readonly number[]): Promise<string[]> {
    return rows.map((row) => this.#row(row).prompt);
  }

  async sequences(rows: readonly number[]): Promise<Sequence[]> {
    const withResponses = this.#fact.responseTokens !== undefined;
    return rows.map((row) => ({
      prompt: promptOf(this.#fact, row),
      ...(withResponses && { response: responseOf(this.#fact, row) }),
    }));
  }

  #row(row: number) {
    const fact = this.#fact.rows[row];
    if (fact === undefined) throw new RangeError(`row ${row} of ${this.count}`);
    return fact;
  }
}

/** Texts tokenised in one call of the library. */
const batchRows = 256;

class BlockDataset implements Dataset {
  readonly #stored: StoredDataset & { readonly format: 2 };
  readonly #cache: BlockCache;
  readonly count: number;
  readonly longestPrompt: number;

  constructor(stored: StoredDataset & { readonly format: 2 }, cache: BlockCache) {
    this.#stored = stored;
    this.#cache = cache;
    const { rows, longest, limit } = stored.index;
    const longestPrompt = longest ?? limit?.maxLength;
    if (longestPrompt === undefined)
      throw misshapen(stored.name, 'the index says neither the longest prompt nor the limit');
    this.count = rows;
    this.longestPrompt = longestPrompt;
  }

  facts(rows: readonly number[]): Promise<ScorerRow[]> {
    return this.#read(rows, (stored) => stored);
  }

  async prompts(rows: readonly number[], tokenizer: BatchTokenizer): Promise<string[]> {
    return (await this.#texts(rows, tokenizer)).map(({ prompt }) => prompt);
  }

  async sequences(rows: readonly number[], tokenizer: BatchTokenizer): Promise<Sequence[]> {
    const texts = await this.#texts(rows, tokenizer);
    const sequences: Sequence[] = [];
    for (let start = 0; start < texts.length; start += batchRows) {
      const batch = texts.slice(start, start + batchRows);
      const prompts = await tokenizer.encodeBatch(batch.map(({ prompt }) => prompt));
      const texted = batch.flatMap(({ responses }) => responses);
      const tokens = texted.length === 0 ? [] : await tokenizer.encodeBatch(texted);
      let next = 0;
      prompts.forEach((prompt, i) => {
        const [response, other] = tokens.slice(next, (next += at(batch, i).responses.length));
        const sequence: Sequence = {
          prompt,
          ...(response && { response }),
          ...(other && { rejected: { prompt, response: other } }),
        };
        sequences.push(this.#limited(at(rows, start + i), sequence));
      });
    }
    return sequences;
  }

  #texts(rows: readonly number[], tokenizer: BatchTokenizer): Promise<RowTexts[]> {
    const { kind, template, templateKwargs, now } = this.#stored.index;
    const renderer = new RowRenderer(tokenizer, {
      kind,
      chatTemplate: 'auto',
      template,
      ...(templateKwargs && { templateKwargs }),
      ...(now !== undefined && { now }),
    });
    return this.#read(rows, (stored, row) => renderer.render(stored, this.#fault(row)));
  }

  /** Block by block, so that each is needed once; the event loop gets a turn after each. */
  async #read<T>(rows: readonly number[], make: (stored: StoredRow, row: number) => T): Promise<T[]> {
    const made = new Map<number, T>();
    const { blocks } = this.#stored.index;
    for (const row of [...new Set(rows)].sort((a, b) => a - b)) {
      const block = blocks[this.#blockOf(row)];
      if (block === undefined) throw new RangeError(`row ${row} of ${this.count}`);
      const lines = await this.#block(block);
      made.set(row, make(decodeRow(lines.line(row - block.firstRow), `${this.#stored.name}, row ${row}`), row));
      if (made.size % 64 === 0) await nextTurn();
    }
    return rows.map((row) => made.get(row) as T);
  }

  async #block(block: DatasetBlock): Promise<Block> {
    const { name, block: read } = this.#stored;
    const lines = await this.#cache.get(`${name}/${block.sha256}`, () => read(block));
    if (lines.rows !== block.rows)
      throw misshapen(`${name}/${block.sha256}`, `expected ${block.rows} rows, found ${lines.rows}`);
    return lines;
  }

  /** Index of the last block that begins at or before this row; −1 outside the dataset. */
  #blockOf(row: number): number {
    if (!Number.isInteger(row) || row < 0 || row >= this.count) return -1;
    const { blocks } = this.#stored.index;
    let [low, high] = [0, blocks.length - 1];
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if (at(blocks, middle).firstRow <= row) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  #limited(row: number, sequence: Sequence): Sequence {
    const { kind, limit } = this.#stored.index;
    if (sequence.prompt.length === 0) throw this.#fault(row)('the prompt has no tokens');
    const length = lengthOf(sequence);
    if (limit === undefined || length <= limit.maxLength) return sequence;
    if (limit.truncation === 'error') throw overlong(this.#fault(row), kind, length, limit.maxLength);
    return atLimit(sequence, limit.maxLength, limit.truncation);
  }

  #fault(row: number): RowFault {
    const where = `${this.#stored.name}, row ${row}`;
    return (reason, cause, hint) =>
      new InvalidInputError(`${where} (from 0): ${reason}`, { where, cause, ...(hint === undefined ? {} : { hint }) });
  }
}
