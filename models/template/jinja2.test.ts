import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { parseJson } from '../json.ts';
import { TemplateError, renderChat } from '../template.ts';

/** A template and its result; null: it is refused. */
type Case = readonly [template: string, text: string | null];

const file = parseJson(readFileSync(new URL('jinja2-cases.json', import.meta.url), 'utf8')) as {
  source: string;
  data: Record<string, unknown>;
  cases: Case[];
};

function render(template: string): string {
  const { messages, ...kwargs } = file.data;
  try {
    return renderChat(template, { messages: messages as Record<string, unknown>[], kwargs }).text;
  } catch (error) {
    if (error instanceof TemplateError) return `refused: ${error.reason}`;
    throw error;
  }
}

it(`agrees with ${file.source} on ${file.cases.length} snippets: the same text, or an error too`, () => {
  const wrong = file.cases.flatMap(([template, text]) => {
    const got = render(template);
    const agrees = text === null ? got.startsWith('refused: ') : got === text;
    return agrees ? [] : [{ template, got, expected: text ?? 'refused' }];
  });
  expect(wrong).toEqual([]);
});
