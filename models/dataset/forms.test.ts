import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { InvalidInputError } from '../../core/errors.ts';
import type { RowKind } from '../../core/run-kinds.ts';
import { type Row, type RowColumns, readRows, verlColumns } from './rows.ts';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'petrel-forms-'));
});
afterEach(async () => rm(folder, { recursive: true }));

async function read(row: unknown, columns: Partial<RowColumns> & { readonly kind: RowKind }): Promise<Row[]> {
  const path = join(folder, 'rows.jsonl');
  await writeFile(path, JSON.stringify(row));
  const rows: Row[] = [];
  for await (const one of readRows([path], { ...verlColumns, ...columns })) rows.push(one);
  return rows;
}

const gsm8k = { question: '1 + 1?', answer: 'It is 2.\n#### 2' };
const chat = [
  { role: 'user', content: 'a' },
  { role: 'assistant', content: 'b' },
];
const scored = { data_source: 's', prompt: 'a', reward_model: { style: 'rule', ground_truth: '1' } };

describe('rows of another form than the run expects', () => {
  it.each<[string, unknown, Partial<RowColumns> & { readonly kind: RowKind }, RegExp, RegExp]>([
    [
      'GSM8K',
      gsm8k,
      { kind: 'rl' },
      /GSM8K/,
      /write data.format: gsm8k.* petrel data prepare gsm8k \S+rows.jsonl --out/,
    ],
    [
      'GSM8K with its column as the prompt',
      gsm8k,
      { kind: 'rl', promptKey: 'question' },
      /GSM8K/,
      /data.format: gsm8k/,
    ],
    ['GSM8K to be learnt', gsm8k, { kind: 'sft' }, /GSM8K/, /data.format: gsm8k/],
    ['GSM8K as pairs', gsm8k, { kind: 'pairs' }, /GSM8K/, /kind: rl or kind: sft/],
    ['MATH', { problem: 'p', solution: String.raw`\boxed{1}` }, { kind: 'rl' }, /MATH/, /^petrel data prepare math /],
    [
      'MATH to be learnt',
      { problem: 'p', solution: String.raw`\boxed{1}` },
      { kind: 'sft' },
      /MATH/,
      /data.prompt_key: problem and data.response_key: solution/,
    ],
    ['a chat', { messages: chat }, { kind: 'rl' }, /a chat \(messages/, /^write kind: sft$/],
    [
      'a scored chat',
      { ...scored, prompt: undefined, messages: chat.slice(0, 1) },
      { kind: 'rl' },
      /a chat/,
      /^write data.prompt_key: messages$/,
    ],
    [
      'a chat beside a prompt',
      { prompt: 'a', messages: chat },
      { kind: 'sft' },
      /a chat/,
      /^write data.prompt_key: messages$/,
    ],
    [
      'a chat in conversations',
      { conversations: chat },
      { kind: 'sft' },
      /a chat/,
      /^write data.prompt_key: conversations$/,
    ],
    ['a chat as pairs', { messages: chat }, { kind: 'pairs' }, /a chat/, /^write kind: sft$/],
    ['preferences', { prompt: 'a', chosen: 'b', rejected: 'c' }, { kind: 'rl' }, /a preference/, /kind: dpo.*kind: rm/],
    ['preferences of chats', { chosen: chat, rejected: chat }, { kind: 'sft' }, /a preference/, /kind: dpo/],
    [
      'Alpaca',
      { instruction: 'a', input: '', output: 'b' },
      { kind: 'sft' },
      /question with its answer/,
      /^write data.prompt_key: instruction and data.response_key: output$/,
    ],
    [
      'Alpaca with input',
      { instruction: 'a', input: 'x', output: 'b' },
      { kind: 'sft' },
      /Alpaca/,
      /"prompt": "instruction/,
    ],
    [
      'Alpaca in a scored run',
      { instruction: 'a', input: '', output: 'b' },
      { kind: 'rl' },
      /question with its answer/,
      /reward_model.*kind: sft/,
    ],
    [
      'ShareGPT',
      {
        conversations: [
          { from: 'human', value: 'a' },
          { from: 'gpt', value: 'b' },
        ],
      },
      { kind: 'sft' },
      /ShareGPT/,
      /"messages": \[/,
    ],
    ['rows for a scored run', scored, { kind: 'sft' }, /scored run/, /^write kind: rl$/],
    ['rows for a scored run as pairs', scored, { kind: 'pairs' }, /scored run/, /^write kind: rl$/],
    [
      'another prompt key than the rows have',
      scored,
      { kind: 'rl', promptKey: 'question' },
      /scored run/,
      /^write data.prompt_key: prompt$/,
    ],
    [
      'prompt and completion',
      { prompt: 'a', completion: 'b' },
      { kind: 'sft' },
      /question with its answer/,
      /^write data.response_key: completion$/,
    ],
    [
      'prompt and completion in a scored run',
      { prompt: 'a', completion: 'b' },
      { kind: 'rl' },
      /question with its answer/,
      /kind: sft, data.response_key: completion/,
    ],
    [
      'a list for each column',
      { prompt: ['a', 'b'], answer: ['1', '2'] },
      { kind: 'rl' },
      /a table by columns, with a list for each/,
      /zip\(\*t.values\(\)\)/,
    ],
    [
      'rows in a list',
      { version: 1, data: [scored, scored] },
      { kind: 'rl' },
      /holds the rows as a list/,
      /^python3 -c .* data$/,
    ],
    [
      'a table by columns',
      { prompt: { '0': 'a' }, answer: { '0': 'b' } },
      { kind: 'rl' },
      /pandas/,
      /orient='records', lines=True/,
    ],
  ])('are named, with what to type: %s', async (_, row, columns, form, advice) => {
    const error = await read(row, columns).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(InvalidInputError);
    const { message, hint } = error as InvalidInputError;
    expect(message).toMatch(/rows\.jsonl, row 1: .*; this is /);
    expect(message).toMatch(form);
    expect(hint).toMatch(advice);
  });

  it('are read when the recipe says what the hint said', async () => {
    const asText = { instruction: '', asText: true };
    expect(await read(gsm8k, { kind: 'rl', promptKey: 'question', gsm8k: asText })).toMatchObject([
      { prompt: '1 + 1?', groundTruth: '2' },
    ]);
    for (const promptKey of ['messages', 'conversations'])
      expect(await read({ prompt: 'x', [promptKey]: chat }, { kind: 'sft', promptKey })).toMatchObject([
        { prompt: chat.slice(0, 1), response: chat[1] },
      ]);
    expect(
      await read(
        { instruction: 'a', input: '', output: 'b' },
        { kind: 'sft', promptKey: 'instruction', responseKey: 'output' },
      ),
    ).toMatchObject([{ prompt: 'a', response: 'b' }]);
  });

  it('are not said to have a form that the recipe names already', async () => {
    const asText = { instruction: '', asText: true };
    const other = { ...gsm8k, answer: 'It is 2. #### two' };
    await expect(read(other, { kind: 'rl', gsm8k: asText })).rejects.toThrow(/expected "#### " and a number/);
    await expect(read({ ...scored, prompt: '' }, { kind: 'rl' })).rejects.toThrow(/prompt is empty$/);
  });
});
