/**
 * Rows as they come to blocks of a dataset, in one pass and bounded memory. Prompts are tokenised when they are drawn;
 * here their tokens are counted only where that decides which rows are kept, and in the first rows, so that a small
 * dataset is checked whole before a run begins.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { at } from '../../core/at.ts';
import type { DatasetRules } from '../../core/records/dataset-index.ts';
import type { BatchTokenizer } from '../tokenizer.ts';
import { BlockWriter, usualBlockBytes } from './blocks.ts';
import { charactersOf, isHuge } from './row-length.ts';
import type { PutBlock } from './blocks.ts';
import { overlong } from './limit.ts';
import { lostText } from './lost-text.ts';
import type { LostText } from './lost-text.ts';
import { rowError } from './raw.ts';
import { RowRenderer, templateOf } from './render.ts';
import type { RowTexts } from './render.ts';
import type { Row } from './rows.ts';
import { encodeRow } from './stored-row.ts';
import { noRows } from './tokenize.ts';
import type { RowCounts, TokenizeOptions } from './tokenize.ts';

export interface PackOptions extends TokenizeOptions {
  readonly blockBytes?: number;
}

export interface PackedRows {
  readonly rules: DatasetRules;
  readonly counts: RowCounts;
}

/** A batch is counted in one call of the library, on a thread of its own. */
const batchRows = 256;
const batchCharacters = 1 << 20;
/** A text of more characters than these for every token of the limit is probably over it. */
const fewestLongCharacters = 6;
/** This many of the first rows are decoded again, to see what the tokenizer drops. */
const decodedRows = 64;
/** Batches being counted while the next one is read. */
const batchesAtOnce = 4;

/**
 * `put` takes the blocks; without it the rows are only checked. Throws InvalidInputError with file and row: a template
 * that refuses, a prompt over the limit, nothing left.
 */
export async function packRows(
  rows: AsyncIterable<Row>,
  tokenizer: BatchTokenizer,
  options: PackOptions,
  put?: PutBlock,
): Promise<PackedRows> {
  const packer = new RowPacker(tokenizer, options, put);
  let taken = 0;
  for await (const row of rows) {
    if (options.maxSamples >= 0 && taken >= options.maxSamples) break;
    taken++;
    const full = packer.add(row);
    if (full !== undefined) await full;
  }
  return packer.finish();
}

interface PendingRow {
  readonly row: Row;
  /** Empty where nothing is stored and no tokens are counted any more. */
  readonly line: string;
}

interface TokenCount {
  readonly prompt: number;
  /** Tokens of the response; of a pair those of the longer one. */
  readonly response: number;
}

interface CountedBatch {
  readonly rows: readonly PendingRow[];
  readonly counts: Promise<readonly TokenCount[]>;
}

class RowPacker {
  readonly #tokenizer: BatchTokenizer;
  readonly #options: PackOptions;
  readonly #renderer: RowRenderer;
  readonly #template: string | undefined;
  /** undefined: rows are only checked. */
  readonly #writer: BlockWriter | undefined;
  #batch: PendingRow[] = [];
  #batchCharacters = 0;
  /** Characters of the lines whose tokens were counted, or not. */
  #characters = 0;
  readonly #counted: CountedBatch[] = [];
  #rows = 0;
  #filtered = 0;
  #truncated = 0;
  #longest = 0;
  #longestPrompt = 0;
  #allCounted = true;
  #hasChat = false;
  #lost: Promise<LostText> | undefined;

  constructor(tokenizer: BatchTokenizer, options: PackOptions, put: PutBlock | undefined) {
    this.#tokenizer = tokenizer;
    this.#options = options;
    this.#template = templateOf(tokenizer, options);
    this.#renderer = new RowRenderer(tokenizer, { ...options, template: this.#template });
    this.#writer = put && new BlockWriter(put, options.blockBytes);
  }

  /** A promise where a batch is full. */
  add(row: Row): Promise<void> | undefined {
    this.#renderer.check(row, (...why) => rowError(row, ...why));
    const characters = charactersOf(row);
    if (isHuge(row, characters, this.#options)) {
      this.#filtered++;
      return undefined;
    }
    this.#hasChat ||= typeof row.prompt !== 'string';
    const line = this.#writer !== undefined || this.#countsTokens() ? encodeRow(row) : '';
    this.#batch.push({ row, line });
    this.#batchCharacters += line === '' ? characters : line.length;
    const isFull = this.#batch.length === batchRows || this.#batchCharacters >= batchCharacters;
    return isFull ? this.#endBatch() : undefined;
  }

  #countsTokens(): boolean {
    const { filterOverlong, blockBytes = usualBlockBytes } = this.#options;
    return filterOverlong || this.#characters < blockBytes;
  }

  async finish(): Promise<PackedRows> {
    await this.#endBatch();
    await this.#settle(0);
    await this.#writer?.end();
    const counts = {
      rows: this.#rows,
      filtered: this.#filtered,
      truncated: this.#truncated,
      longest: this.#longest,
      ...(this.#lost && { lost: await this.#lost }),
    };
    if (counts.rows === 0) throw noRows(counts, this.#options.maxLength);
    return { rules: this.#rules(), counts };
  }

  /** What changes no row is left out: the same rows then have the same digest. */
  #rules(): DatasetRules {
    const { kind, maxLength, truncation, templateKwargs = {}, now } = this.#options;
    const template = this.#hasChat ? this.#template : undefined;
    return {
      kind,
      ...(this.#allCounted && { longest: this.#longestPrompt }),
      ...((!this.#allCounted || this.#truncated > 0) && { limit: { maxLength, truncation } }),
      ...(template !== undefined && {
        template,
        ...(Object.keys(templateKwargs).length > 0 && { templateKwargs }),
        ...(now !== undefined && template.includes('strftime_now') && { now }),
      }),
    };
  }

  async #endBatch(): Promise<void> {
    const rows = this.#batch;
    const isCounted = this.#countsTokens();
    this.#characters += this.#batchCharacters;
    [this.#batch, this.#batchCharacters] = [[], 0];
    await nextTurn();
    if (isCounted) {
      const counts = this.#count(rows);
      counts.catch(() => {}); // it is thrown when it is this batch's turn
      this.#counted.push({ rows, counts });
      await this.#settle(batchesAtOnce - 1);
      return;
    }
    await this.#settle(0);
    this.#allCounted = false;
    await this.#refuseLongest(rows);
    for (const { line } of rows) {
      const full = this.#keep(line);
      if (full !== undefined) await full;
    }
  }

  /**
   * Refuses rows that are so long that they would fail the run when drawn; of rows whose tokens decide nothing, only
   * these are counted.
   */
  async #refuseLongest(rows: readonly PendingRow[]): Promise<void> {
    const { maxLength, truncation } = this.#options;
    if (truncation !== 'error') return;
    const long = rows.filter(({ row }) => charactersOf(row) > fewestLongCharacters * maxLength);
    const counts = long.length === 0 ? [] : await this.#count(long);
    for (const [i, count] of counts.entries()) if (long[i] !== undefined) this.#isKept(long[i].row, count);
  }

  async #count(rows: readonly PendingRow[]): Promise<TokenCount[]> {
    const texts = rows.map(({ row }) => this.#renderer.render(row, (...why) => rowError(row, ...why)));
    this.#lost ??= this.#lostOf(texts.slice(0, decodedRows));
    const prompts = await this.#tokenizer.lengths(texts.map(({ prompt }) => prompt));
    const responses = texts.flatMap((text) => text.responses);
    const lengths = responses.length === 0 ? [] : await this.#tokenizer.lengths(responses);
    let next = 0;
    return prompts.map((prompt, i) => {
      const own = lengths.slice(next, (next += at(texts, i).responses.length));
      return { prompt, response: Math.max(0, ...own) };
    });
  }

  #lostOf(rows: readonly RowTexts[]): Promise<LostText> {
    const lost = lostText(
      rows.map(({ prompt, responses }) => prompt + responses.join('')),
      this.#tokenizer,
    );
    lost.catch(() => {}); // it is thrown at the end
    return lost;
  }

  /** Writes counted batches, in order, until at most `left` are being counted. */
  async #settle(left: number): Promise<void> {
    while (this.#counted.length > left) {
      const batch = this.#counted.shift();
      const counts = (await batch?.counts) ?? [];
      for (const [i, { row, line }] of (batch?.rows ?? []).entries()) {
        const count = counts[i];
        const full = count !== undefined && this.#isKept(row, count) ? this.#keep(line) : undefined;
        if (full !== undefined) await full;
      }
    }
  }

  #isKept(row: Row, count: TokenCount): boolean {
    const { kind, maxLength, truncation, filterOverlong } = this.#options;
    const length = count.prompt + count.response;
    this.#longest = Math.max(this.#longest, length);
    if (count.prompt === 0) throw rowError(row, 'the prompt has no tokens');
    if (length > maxLength) {
      if (filterOverlong) {
        this.#filtered++;
        return false;
      }
      if (truncation === 'error') throw overlong((...why) => rowError(row, ...why), kind, length, maxLength);
      this.#truncated++;
    }
    this.#longestPrompt = Math.max(this.#longestPrompt, Math.min(count.prompt, maxLength));
    return true;
  }

  #keep(line: string): Promise<void> | undefined {
    this.#rows++;
    return this.#writer?.add(line);
  }
}
