/** The texts of a row that are tokenised. A response ends with the end token, as in verl. */
import { InvalidInputError } from '../../core/errors.ts';
import type { RowKind } from '../../core/run-kinds.ts';
import { type ChatInput, type ChatMessage, ChatTemplate } from '../template.ts';
import type { BatchTokenizer } from '../tokenizer.ts';
import type { StoredRow } from './stored-row.ts';

export interface RenderOptions {
  readonly kind: RowKind;
  /** `none`: prompts must be text. */
  readonly chatTemplate: 'auto' | 'none';
  /** undefined: there is none, and prompts must be text. */
  readonly template: string | undefined;
  readonly templateKwargs?: Readonly<Record<string, unknown>>;
  /** What the template's clock says: `2026-01-02T03:04:05`. */
  readonly now?: string;
}

export interface RowTexts {
  readonly prompt: string;
  /** What is learnt: none (rl), the response (sft), the chosen and the rejected one (pairs). */
  readonly responses: readonly string[];
}

/** An error that names the row. */
export type RowFault = (reason: string, cause?: unknown, hint?: string) => InvalidInputError;

/** The chat template that rows are rendered with: the given one, else the tokenizer's own. */
export function templateOf(
  tokenizer: BatchTokenizer,
  options: Pick<RenderOptions, 'chatTemplate'> & { readonly template?: string },
): string | undefined {
  return options.chatTemplate === 'none' ? undefined : (options.template ?? tokenizer.chatTemplate);
}

/** Responses that a row of each kind has. */
const responsesIn: Readonly<Record<RowKind, number>> = { rl: 0, sft: 1, pairs: 2 };

export class RowRenderer {
  readonly #tokenizer: BatchTokenizer;
  readonly #options: RenderOptions;
  readonly #template: ChatTemplate | undefined;

  constructor(tokenizer: BatchTokenizer, options: RenderOptions) {
    this.#tokenizer = tokenizer;
    this.#options = options;
    this.#template = options.template === undefined ? undefined : new ChatTemplate(options.template);
  }

  /** Throws InvalidInputError made by `fault` for a row that the template refuses, or that has none. */
  render(row: StoredRow, fault: RowFault): RowTexts {
    const prompt =
      typeof row.prompt === 'string'
        ? row.prompt
        : this.#chat(row, { messages: row.prompt, addGenerationPrompt: true }, fault);
    const given = [row.response ?? '', row.rejected ?? ''].slice(0, responsesIn[this.#options.kind]);
    return { prompt, responses: given.map((response) => this.#response(row, response, prompt, fault)) };
  }

  /** Throws what `render` would throw of every row of this kind, without rendering it. */
  check(row: StoredRow, fault: RowFault): void {
    if (typeof row.prompt !== 'string' && this.#template === undefined) throw this.#noTemplate(fault);
    if (responsesIn[this.#options.kind] > 0) this.#end();
  }

  #response(row: StoredRow, response: string | ChatMessage, prompt: string, fault: RowFault): string {
    const end = this.#end();
    if (typeof response === 'string') return response + end;
    if (typeof response['content'] === 'string' && response['tool_calls'] === undefined)
      return response['content'] + end;
    if (typeof row.prompt === 'string') throw fault('a prompt of text cannot be followed by a message with tool calls');
    const whole = this.#chat(row, { messages: [...row.prompt, response] }, fault);
    if (!whole.startsWith(prompt)) throw fault('the chat template renders this turn differently from its prompt');
    const text = whole.slice(prompt.length);
    const last = text.lastIndexOf(end);
    return last < 0 ? text + end : text.slice(0, last + end.length);
  }

  #end(): string {
    const end = this.#tokenizer.specialTokens['eos_token'];
    if (end === undefined)
      throw new InvalidInputError('the tokenizer names no eos_token, and a response must end with one');
    return end;
  }

  #noTemplate(fault: RowFault): InvalidInputError {
    const why = this.#options.chatTemplate === 'none' ? 'data.chat_template is none' : 'the model has no chat template';
    return fault(`expected a prompt of text, found chat messages: ${why}`);
  }

  #chat(row: StoredRow, input: ChatInput, fault: RowFault): string {
    if (this.#template === undefined) throw this.#noTemplate(fault);
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
      if (cause instanceof InvalidInputError) throw fault(cause.message, cause, cause.hint);
      throw cause;
    }
  }
}
