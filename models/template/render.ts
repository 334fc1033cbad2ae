/** Renders a chat as transformers does. */
import { InvalidInputError } from '../../core/errors.ts';
import { resetBudget } from './budget.ts';
import { toValue } from './convert.ts';
import { OperationError, TemplateError } from './errors.ts';
import { execute } from './evaluate/statements.ts';
import { Output, type Rendering, Scope } from './evaluate/scope.ts';
import { makeGlobals } from './globals.ts';
import type { Statement } from './nodes.ts';
import { parseTemplate } from './parser/statements.ts';
import { strip } from './python-strings.ts';

export type ChatMessage = Readonly<Record<string, unknown>>;

export interface ChatInput {
  readonly messages: readonly ChatMessage[];
  readonly tools?: readonly unknown[] | undefined;
  readonly documents?: readonly unknown[] | undefined;
  readonly addGenerationPrompt?: boolean | undefined;
  /** Cuts the text right after the content of the last message, so that the model continues this message. */
  readonly continueFinalMessage?: boolean | undefined;
  /** Further variables of the template (`enable_thinking`, …). */
  readonly kwargs?: Readonly<Record<string, unknown>> | undefined;
  readonly bosToken?: string | undefined;
  readonly eosToken?: string | undefined;
  /** Other special tokens by variable name (`pad_token`, …). Empty ones are not defined. */
  readonly specialTokens?: Readonly<Record<string, string>> | undefined;
  /** The template's clock: `2026-01-02T03:04:05`. Without it a template that reads the date is refused. */
  readonly now?: string | undefined;
}

export interface RenderedChat {
  readonly text: string;
  /** [start, end), in code points, of the text inside `{% generation %}`. */
  readonly assistantSpans: readonly (readonly [number, number])[];
}

/**
 * A parsed template: parsed once and rendered many times. Throws TemplateError (an InvalidInputError that names the
 * line).
 */
export class ChatTemplate {
  readonly source: string;
  readonly #statements: readonly Statement[];

  constructor(source: string) {
    this.source = source;
    this.#statements = guarded(() => parseTemplate(source), { line: 1 });
  }

  render(input: ChatInput): RenderedChat {
    if (input.messages.length === 0) throw new InvalidInputError('a chat template needs at least one message');
    if (input.continueFinalMessage === true && input.addGenerationPrompt === true) {
      throw new InvalidInputError('continueFinalMessage and addGenerationPrompt exclude each other');
    }
    const messages = aliasReasoning(input.messages.map(withoutNulls));
    if (input.continueFinalMessage !== true) return this.#run(messages, input);
    const { tagged, content } = tagFinalMessage(messages);
    const { text, assistantSpans } = this.#run(tagged, input);
    return { text: cutAtTag(text, content), assistantSpans };
  }

  #run(messages: readonly ChatMessage[], input: ChatInput): RenderedChat {
    resetBudget();
    const rendering: Rendering = { output: new Output(), spans: [], line: 1 };
    guarded(() => {
      const scope = new Scope();
      for (const [name, value] of makeGlobals(input.now)) scope.set(name, value);
      for (const [name, value] of Object.entries(variables(messages, input)))
        if (value !== undefined) scope.set(name, toValue(value));
      execute(this.#statements, { scope, rendering }, rendering.output);
    }, rendering);
    return { text: rendering.output.text, assistantSpans: rendering.spans };
  }
}

const parsed = new Map<string, ChatTemplate>();

/** Renders with a small cache of parsed templates. */
export function renderChat(template: string, input: ChatInput): RenderedChat {
  let chat = parsed.get(template);
  if (chat === undefined) {
    chat = new ChatTemplate(template);
    if (parsed.size >= 32) parsed.clear();
    parsed.set(template, chat);
  }
  return chat.render(input);
}

function variables(messages: readonly ChatMessage[], input: ChatInput): Record<string, unknown> {
  const tokens = { ...input.specialTokens, bos_token: input.bosToken, eos_token: input.eosToken };
  return {
    ...Object.fromEntries(Object.entries(tokens).filter(([, token]) => token !== undefined && token !== '')),
    ...input.kwargs,
    messages,
    tools: input.tools ?? null,
    documents: input.documents ?? null,
    add_generation_prompt: input.addGenerationPrompt ?? false,
  };
}

/** The message without its nulls: in transformers 5 null means the same as a missing key. */
function withoutNulls(message: ChatMessage): ChatMessage {
  const entries = message instanceof Map ? [...(message as Map<string, unknown>)] : Object.entries(message);
  return Object.fromEntries(entries.filter(([, value]) => value !== null && value !== undefined));
}

/** Reasoning has three names in practice. The standard name and that of gpt-oss are filled from any of the three. */
function aliasReasoning(messages: readonly ChatMessage[]): ChatMessage[] {
  return messages.map((message) => {
    const reasoning = message['reasoning_content'] ?? message['thinking'] ?? message['reasoning'];
    return reasoning === undefined ? message : { thinking: reasoning, ...message, reasoning_content: reasoning };
  });
}

const tag = 'CONTINUE_FINAL_MESSAGE_TAG ';

/** Marks the end of the last message's content, or of the last text among its parts. */
function tagFinalMessage(messages: readonly ChatMessage[]): { tagged: ChatMessage[]; content: string } {
  const last = messages.at(-1) as ChatMessage;
  const { content } = last;
  if (typeof content === 'string')
    return { tagged: [...messages.slice(0, -1), { ...last, content: content + tag }], content };
  const parts = Array.isArray(content) ? (content as readonly unknown[]) : [];
  const index = parts.findLastIndex(
    (part) => typeof part === 'object' && part !== null && 'text' in part && typeof part.text === 'string',
  );
  if (index < 0) throw new InvalidInputError('continueFinalMessage: the final message has no text to continue');
  const part = parts[index] as { text: string };
  const marked = parts.with(index, { ...part, text: part.text + tag });
  return { tagged: [...messages.slice(0, -1), { ...last, content: marked }], content: part.text };
}

/**
 * Cuts at the mark. If the template trimmed the content, the mark lost its space; then trailing white space is removed,
 * too.
 */
function cutAtTag(text: string, content: string): string {
  const at = text.lastIndexOf(tag.trim());
  if (at < 0 || !text.includes(strip(content, undefined, 'both'))) {
    throw new InvalidInputError(
      'continueFinalMessage: the final message does not appear in the rendered chat; the template drops or changes it',
    );
  }
  return text.startsWith(tag, at) ? text.slice(0, at) : strip(text.slice(0, at), undefined, 'right');
}

/** Adds the line to every error, and refuses a template with endless recursion. */
function guarded<T>(run: () => T, place: { readonly line: number }): T {
  try {
    return run();
  } catch (error) {
    if (error instanceof OperationError) throw new TemplateError(error.message, place.line);
    if (error instanceof RangeError) throw new TemplateError(`too deep or too large (${error.message})`, place.line);
    throw error;
  }
}
