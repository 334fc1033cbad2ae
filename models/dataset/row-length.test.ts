import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { BatchTokenizer } from '../tokenizer.ts';
import { type PackOptions, packRows } from './pack.ts';
import { readRows, verlColumns } from './rows.ts';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'petrel-length-'));
});
afterEach(async () => rm(folder, { recursive: true }));

/** Each character is a token. It never sees a text that is long enough to be refused by its length. */
const tokenizer: BatchTokenizer = {
  vocabSize: 65_536,
  stopTokens: [],
  specialTokens: { eos_token: '.' },
  chatTemplate: '{{ messages[0].content }}',
  encodeBatch: async (texts) => texts.map((text) => new Int32Array(text.length)),
  lengths: async (texts) =>
    texts.map(({ length }) => (length > 300_000 ? expect.fail(`a text of ${length} was tokenised`) : length)),
  decodeBatch: async (sequences) => sequences.map(({ length }) => 'a'.repeat(length)),
};

const scored = (prompt: unknown, more = {}) => ({
  data_source: 's',
  prompt,
  reward_model: { ground_truth: '1' },
  ...more,
});

async function pack(rows: readonly unknown[], change: Partial<PackOptions> = {}, text = JSON.stringify) {
  const path = join(folder, 'rows.jsonl');
  await writeFile(path, rows.map((row) => text(row)).join('\n'));
  const options = {
    kind: 'rl',
    maxLength: 100,
    truncation: 'error',
    filterOverlong: false,
    maxSamples: -1,
    chatTemplate: 'auto',
    ...change,
  } as const;
  return packRows(readRows([path], { ...verlColumns, kind: options.kind }), tokenizer, options);
}

const huge = 'a'.repeat(20_000_000);

describe('a row that no model can take', () => {
  it.each([
    ['text', huge],
    ['a message', [{ role: 'user', content: huge }]],
    ['parts of a message', [{ role: 'user', content: [{ type: 'text', text: huge }] }]],
  ])('is refused by its length, before it is tokenised: %s', async (_, prompt) => {
    await expect(pack([scored('a'), scored(prompt)])).rejects.toMatchObject({
      message: expect.stringMatching(
        /row 2: the prompt has 20000\d{3} characters, data.max_prompt_length is 100 tokens/,
      ),
      hint: expect.stringMatching(/leave the row out/),
    });
  });

  it('is refused as a response, and where rows are cut', async () => {
    const sft = [{ prompt: 'a', response: huge }];
    await expect(pack(sft, { kind: 'sft' })).rejects.toThrow(/row 1: prompt and response have 20000001 characters/);
    await expect(pack([scored(huge)], { truncation: 'left' })).rejects.toThrow(
      /more than 16 Mi characters are not cut/,
    );
  });

  it('is left out like other rows over the limit', async () => {
    const { counts } = await pack([scored('a'), scored(huge), scored('b')], { filterOverlong: true });
    expect(counts).toMatchObject({ rows: 2, filtered: 1 });
  });
});

describe('half a character', () => {
  const written = (value: unknown) => JSON.stringify(value).replaceAll('HALF', String.raw`\ud800`);

  it.each<[string, unknown, PackOptions['kind'], string]>([
    ['a prompt', scored('1HALF+1'), 'rl', 'prompt'],
    ['a message', scored([{ role: 'user', content: 'aHALF' }]), 'rl', 'prompt'],
    ['a part of a message', scored([{ role: 'user', content: [{ type: 'text', text: 'aHALF' }] }]), 'rl', 'prompt'],
    ['a tool', scored('a', { tools: [{ name: 'HALF' }] }), 'rl', 'tools'],
    ['a response', { prompt: 'a', response: 'HALF' }, 'sft', 'response'],
    [
      'a message to learn',
      {
        messages: [
          { role: 'user', content: 'a' },
          { role: 'assistant', content: 'HALF' },
        ],
      },
      'sft',
      'response',
    ],
    ['the rejected response', { prompt: 'a', chosen: 'a', rejected: 'bHALF' }, 'pairs', 'rejected'],
    ['the ground truth', { ...scored('a'), reward_model: { ground_truth: 'HALF' } }, 'rl', 'reward_model.ground_truth'],
  ])('is refused in %s', async (_, row, kind, key) => {
    await expect(pack([row], { kind }, written)).rejects.toThrow(
      new RegExp(String.raw`row 1: ${key}: the text has half a character, the lone surrogate \\ud800`),
    );
  });

  it('is allowed where nothing is tokenised, and whole pairs everywhere', async () => {
    const rows = [scored('a😀', { extra_info: { note: 'HALF' } })];
    expect((await pack(rows, {}, written)).counts.rows).toBe(1);
  });
});
