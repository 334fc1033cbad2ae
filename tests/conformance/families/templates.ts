/** Chat templates: the rendered text, assistant spans, or the refusal. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseJson } from '../../../models/json.ts';
import { type ChatInput, type ChatMessage, TemplateError, renderChat } from '../../../models/template.ts';
import type { Evaluator, GoldenCase, GoldenFile } from '../types.ts';

export const templates: Evaluator = {
  family: 'templates',
  handles: (file) => typeof file['chat_template'] === 'string' || typeof file['chat_template_from'] === 'string',
  async evaluate(testCase, file, folder) {
    const template = await chatTemplate(file, folder);
    const inputs = await exactInputs(testCase, file, folder);
    try {
      const { text, assistantSpans } = renderChat(template, chatInput(inputs, file));
      return {
        got:
          testCase.expected?.['assistant_spans'] === undefined ? { text } : { text, assistant_spans: assistantSpans },
      };
    } catch (error) {
      // The harness compares messages with the template's own message; petrel puts the line before it.
      if (error instanceof TemplateError) throw new Error(error.reason, { cause: error });
      throw error;
    }
  },
};

async function chatTemplate(file: GoldenFile, folder: string): Promise<string> {
  const own = file['chat_template'];
  if (typeof own === 'string') return own;
  const other = JSON.parse(await readFile(join(folder, String(file['chat_template_from'])), 'utf8')) as GoldenFile;
  return String(other['chat_template']);
}

type Inputs = Readonly<Record<string, unknown>>;

/**
 * Reads the case's inputs from the file again without loss: 1.0 differs from 1, and large integers keep their digits.
 */
async function exactInputs(testCase: GoldenCase, file: GoldenFile, folder: string): Promise<Inputs> {
  try {
    const exact = parseJson(await readFile(join(folder, `${file.name}.json`), 'utf8')) as { cases?: GoldenCase[] };
    return exact.cases?.find((other) => other.name === testCase.name)?.inputs ?? testCase.inputs;
  } catch {
    return testCase.inputs;
  }
}

function chatInput(inputs: Inputs, file: GoldenFile): ChatInput {
  return {
    messages: inputs['messages'] as ChatMessage[],
    tools: (inputs['tools'] ?? undefined) as unknown[] | undefined,
    addGenerationPrompt: inputs['add_generation_prompt'] === true,
    continueFinalMessage: inputs['continue_final_message'] === true,
    kwargs: (inputs['kwargs'] ?? {}) as Record<string, unknown>,
    bosToken: text(file['bos_token']),
    eosToken: text(file['eos_token']),
    now: text(file['now']),
  };
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}
