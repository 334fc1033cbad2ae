/** Rows to token ids: chat template, tokenizer, limits. */
import { InvalidInputError } from '../../core/errors.ts';
import type { DatasetFact, RowFact } from '../dataset-fact.ts';
import { type ChatInput, type ChatMessage, ChatTemplate } from '../template.ts';
import type { Tokenizer } from '../tokenizer.ts';
import { rowError } from './raw.ts';
import type { Row } from './rows.ts';
import { type Truncation, truncate, truncatePair } from './truncate.ts';

export interface TokenizeOptions {
  readonly kind: 'rl' | 'sft';
  /** Tokens: of the prompt (rl), of prompt and response together (sft). */
  readonly maxLength: number;
  readonly truncation: Truncation;
  /** Leave rows over the limit out instead. */
  readonly filterOverlong: boolean;
  /** Use only the first rows; negative: all. */
  readonly maxSamples: number;
  /** `none`: prompts must be text. */
  readonly chatTemplate: 'auto' | 'none';
  /** Instead of the tokenizer's own chat template. */
  readonly customTemplate?: string;
  /** A chat template in place of the tokenizer's own. */
  readonly template?: string;
  readonly templateKwargs?: Readonly<Record<string, unknown>>;
  /** What the template's clock says: `2026-01-02T03:04:05`. */
  readonly now?: string;
}

export interface TokenizedRows {
  readonly dataset: DatasetFact;
  readonly counts: {
    readonly rows: number;
    /** Rows left out because they were over the limit. */
    readonly filtered: number;
    readonly truncated: number;
    /** Tokens of the longest row before filtering and truncation. */
    readonly longest: number;
  };
}

/** Rows tokenised in one call of the library. */
const batchRows = 256;

/** Throws InvalidInputError with file and row: a template that refuses, a prompt over the limit, nothing left. */
export async function tokenizeRows(
  rows: AsyncIterable<Row>,
  tokenizer: Tokenizer,
  options: TokenizeOptions,
): Promise<TokenizedRows> {
  const writer = new DatasetWriter(options);
  const renderer = new RowRenderer(tokenizer, options);
  let batch: Row[] = [];
  let taken = 0;
  const flush = async (): Promise<void> => {
    const texts = batch.map((row) => renderer.render(row));
    const prompts = await tokenizer.encodeBatch(texts.map(({ prompt }) => prompt));
    const responses = options.kind === 'sft' ? await tokenizer.encodeBatch(texts.map(({ response }) => response)) : [];
    for (const [i, row] of batch.entries())
      writer.add(row, texts[i]?.prompt ?? '', prompts[i] as Int32Array, responses[i]);
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

/** The texts that are tokenised. A response ends with the end token, as in verl. */
class RowRenderer {
  readonly #tokenizer: Tokenizer;
  readonly #options: TokenizeOptions;
  readonly #template: ChatTemplate | undefined;

  constructor(tokenizer: Tokenizer, options: TokenizeOptions) {
    this.#tokenizer = tokenizer;
    this.#options = options;
    const source = options.template ?? tokenizer.chatTemplate;
    this.#template = options.chatTemplate === 'none' || source === undefined ? undefined : new ChatTemplate(source);
  }

  render(row: Row): { prompt: string; response: string } {
    const prompt =
      typeof row.prompt === 'string'
        ? row.prompt
        : this.#chat(row, { messages: row.prompt, addGenerationPrompt: true });
    return { prompt, response: this.#options.kind === 'sft' ? this.#response(row, prompt) : '' };
  }

  #response(row: Row, prompt: string): string {
    const { response = '' } = row;
    const end = this.#tokenizer.specialTokens['eos_token'];
    if (end === undefined)
      throw new InvalidInputError('the tokenizer names no eos_token, and a response must end with one');
    if (typeof response === 'string') return response + end;
    if (typeof response['content'] === 'string' && response['tool_calls'] === undefined)
      return response['content'] + end;
    const whole = this.#chat(row, { messages: [...(row.prompt as readonly ChatMessage[]), response] });
    if (!whole.startsWith(prompt))
      throw rowError(row, 'the chat template renders this turn differently from its prompt');
    const text = whole.slice(prompt.length);
    const last = text.lastIndexOf(end);
    return last < 0 ? text + end : text.slice(0, last + end.length);
  }

  #chat(row: Row, input: ChatInput): string {
    if (this.#template === undefined) {
      const why =
        this.#options.chatTemplate === 'none' ? 'data.chat_template is none' : 'the model has no chat template';
      throw rowError(row, `expected a prompt of text, found chat messages: ${why}`);
    }
    const { specialTokens } = this.#tokenizer;
    try {
      return this.#template.render({
        ...input,
        tools: row.tools,
        kwargs: this.#options.templateKwargs,
        specialTokens,
        bosToken: specialTokens['bos_token'],
        eosToken: specialTokens['eos_token'],
        now: this.#options.now,
      }).text;
    } catch (cause) {
      if (cause instanceof InvalidInputError) throw rowError(row, cause.message, cause, cause.hint);
      throw cause;
    }
  }
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
    const { maxLength, truncation, filterOverlong } = this.#options;
    const length = prompt.length + (response?.length ?? 0);
    this.#longest = Math.max(this.#longest, length);
    if (prompt.length === 0) throw rowError(row, 'the prompt has no tokens');
    if (length <= maxLength) return this.#keep(row, promptText, prompt, response);
    if (filterOverlong) {
      this.#filtered++;
      return;
    }
    if (truncation === 'error') throw this.#overlong(row, length);
    this.#truncated++;
    if (response === undefined) this.#keep(row, promptText, truncate(prompt, maxLength, truncation), undefined);
    else this.#keep(row, promptText, ...truncatePair(prompt, response, maxLength, truncation));
  }

  finish(): TokenizedRows {
    const counts = {
      rows: this.#rows.length,
      filtered: this.#filtered,
      truncated: this.#truncated,
      longest: this.#longest,
    };
    if (counts.rows === 0) {
      const why =
        counts.filtered > 0
          ? `all ${counts.filtered} are over the limit of ${this.#options.maxLength} tokens (longest: ${counts.longest})`
          : 'there were none';
      throw new InvalidInputError(`no rows are left: ${why}`);
    }
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

  #overlong(row: Row, length: number): InvalidInputError {
    const [what, key] =
      this.#options.kind === 'sft'
        ? ['prompt and response have', 'data.max_length']
        : ['the prompt has', 'data.max_prompt_length'];
    const hint = `Raise ${key}, set data.truncation to left, right or middle, or data.filter_overlong_prompts to true.`;
    return rowError(row, `${what} ${length} tokens, ${key} is ${this.#options.maxLength}`, undefined, hint);
  }
}

/** All sequences in a row, and where each begins; one offset more than sequences. */
function join(sequences: readonly Int32Array[]): [Int32Array, Int32Array] {
  const offsets = new Int32Array(sequences.length + 1);
  for (const [i, sequence] of sequences.entries()) offsets[i + 1] = (offsets[i] as number) + sequence.length;
  const tokens = new Int32Array(offsets.at(-1) ?? 0);
  for (const [i, sequence] of sequences.entries()) tokens.set(sequence, offsets[i] as number);
  return [tokens, offsets];
}
