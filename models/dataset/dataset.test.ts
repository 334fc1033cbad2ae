import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { InvalidInputError } from '../../core/errors.ts';
import { promptOf, responseOf } from '../dataset-fact.ts';
import { type Row, type TokenizeOptions, readRows, tokenizeRows, verlColumns } from '../dataset.ts';
import { type Tokenizer, openTokenizer } from '../tokenizer.ts';
import { truncate } from './truncate.ts';

const fixtures = fileURLToPath(new URL('fixtures', import.meta.url));
const row = {
  data_source: 'sums',
  prompt: [{ role: 'user', content: 'ab' }],
  reward_model: { style: 'rule', ground_truth: '3' },
  extra_info: { index: 7 },
};

let folder: string;
let tokenizer: Tokenizer;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'dataset-'));
  const vocab = Object.fromEntries([...'abcdefghijklmnopqrstuvwxyz :?+0123456789W'].map((letter, id) => [letter, id]));
  const tokenizerJson = {
    version: '1.0',
    truncation: null,
    padding: null,
    normalizer: null,
    pre_tokenizer: null,
    post_processor: null,
    decoder: { type: 'Fuse' },
    added_tokens: [
      { id: 50, content: '<end>', single_word: false, lstrip: false, rstrip: false, normalized: false, special: true },
    ],
    model: {
      type: 'BPE',
      dropout: null,
      unk_token: null,
      continuing_subword_prefix: null,
      end_of_word_suffix: null,
      fuse_unk: false,
      byte_fallback: false,
      vocab,
      merges: [],
    },
  };
  const template =
    "{% for m in messages %}{{ m.role }}:{{ m.content }}{{ '<end>' if m.role == 'assistant' }}{% endfor %}{% if add_generation_prompt %}assistant:{% endif %}";
  await writeFile(join(folder, 'tokenizer.json'), JSON.stringify(tokenizerJson));
  await writeFile(
    join(folder, 'tokenizer_config.json'),
    JSON.stringify({ eos_token: '<end>', chat_template: template }),
  );
  tokenizer = await openTokenizer(folder);
});
afterAll(() => rm(folder, { recursive: true, force: true }));

async function write(name: string, rows: readonly unknown[]): Promise<string> {
  const path = join(folder, name);
  await writeFile(path, rows.map((item) => (typeof item === 'string' ? item : JSON.stringify(item))).join('\n'));
  return path;
}

const rl = { kind: 'rl', ...verlColumns } as const;
const sft = { kind: 'sft', ...verlColumns } as const;

async function collect(rows: AsyncIterable<Row>): Promise<Row[]> {
  const all: Row[] = [];
  for await (const item of rows) all.push(item);
  return all;
}

const options: TokenizeOptions = {
  kind: 'rl',
  maxLength: 100,
  truncation: 'error',
  filterOverlong: false,
  maxSamples: -1,
  chatTemplate: 'auto',
};

describe('readRows', () => {
  it('takes rows of a file as often as its weight says, spread evenly', async () => {
    const files = await Promise.all(
      ['a', 'b', 'c'].map((name) =>
        write(
          `${name}.jsonl`,
          [0, 1, 2, 3].map((i) => JSON.stringify({ ...row, prompt: `${name}${i}` })),
        ),
      ),
    );
    const rows = await collect(readRows(files, rl, [2, 0.5, 1.25]));
    expect(rows.map(({ prompt }) => prompt).join(' ')).toBe('a0 a0 a1 a1 a2 a2 a3 a3 b1 b3 c0 c1 c2 c3 c3');
    expect(rows[9]).toMatchObject({ file: files[1], number: 4 });
    await expect(collect(readRows(files, rl, [1, 0.2, 1]))).rejects.toThrow('none of its 4 rows are taken');
  });

  it('reads JSONL, numbers rows by line and keeps 1.0 in prompts', async () => {
    const path = await write('rows.jsonl', [
      row,
      '',
      '{"data_source":"s","prompt":"t","reward_model":{"ground_truth":1.0},"tools":[{"a":1.0}]}',
    ]);
    const rows = await collect(readRows([path], rl));
    expect(rows.map(({ number }) => number)).toEqual([1, 3]);
    expect(rows[0]).toMatchObject({
      dataSource: 'sums',
      groundTruth: '3',
      extraInfo: { index: 7 },
      prompt: row.prompt,
    });
    expect(rows[1]).toMatchObject({ prompt: 't', groundTruth: 1 });
    expect(JSON.stringify(rows[1]?.tools)).toBe('[{"a":1}]');
  });

  it.each(['snappy', 'zstd', 'gzip'])(
    'reads verl Parquet files (%s): nested columns, several row groups',
    async (codec) => {
      const rows = await collect(readRows([join(fixtures, `verl-${codec}.parquet`)], rl));
      expect(rows).toHaveLength(40);
      expect(rows[39]).toMatchObject({
        number: 40,
        dataSource: 'openai/gsm8k',
        groundTruth: '40',
        prompt: [{ role: 'user', content: 'What is 39 + 1?' }],
        extraInfo: { index: 39, split: 'train', score: 19.5 },
      });
    },
  );

  it.each<[string, unknown, RegExp]>([
    ['text that is not JSON', '{"data_source": ', /row 2: expected a JSON object on one line/],
    ['a list', [1], /row 2: expected an object/],
    [
      'no prompt',
      { ...row, prompt: undefined },
      /row 2: prompt: expected text or a list of chat messages, found nothing/,
    ],
    ['an empty prompt', { ...row, prompt: '' }, /row 2: prompt: the prompt is empty/],
    ['no messages', { ...row, prompt: [] }, /row 2: prompt: expected a list of chat messages/],
    [
      'a message without role',
      { ...row, prompt: [{ content: 'x' }] },
      /row 2: prompt\[0\]: expected a message with role/,
    ],
    [
      'a message without content',
      { ...row, prompt: [{ role: 'user' }] },
      /row 2: prompt\[0\].content: expected text, found nothing/,
    ],
    ['no data source', { ...row, data_source: undefined }, /row 2: data_source: expected text/],
    ['no ground truth', { ...row, reward_model: { style: 'rule' } }, /row 2: expected reward_model.ground_truth/],
    ['extra info of another kind', { ...row, extra_info: 3 }, /row 2: extra_info: expected an object, found 3/],
  ])('refuses %s by file and row', async (_, damaged, message) => {
    const path = await write('damaged.jsonl', [row, damaged]);
    await expect(collect(readRows([path], rl))).rejects.toThrow(message);
    await expect(collect(readRows([path], rl))).rejects.toMatchObject({ where: `${path}:2` });
  });

  it('names files that are missing, empty or of another kind', async () => {
    await expect(collect(readRows([join(folder, 'none.jsonl')], rl))).rejects.toThrow(/no such file/);
    await expect(collect(readRows([join(folder, 'none.parquet')], rl))).rejects.toThrow(/no such file/);
    await expect(collect(readRows([await write('empty.jsonl', [])], rl))).rejects.toThrow(/there are no rows/);
    await expect(collect(readRows([await write('rows.csv', ['a,b', '1,2'])], rl))).rejects.toThrow(
      /expected rows of JSON or Parquet; this is a table of text \(CSV\)/,
    );
  });

  it('answers damaged Parquet bytes with rows or InvalidInputError (property)', async () => {
    const bytes = await readFile(join(fixtures, 'verl-snappy.parquet'));
    const path = join(folder, 'mutated.parquet');
    const edit = fc.record({ at: fc.nat(bytes.length - 1), value: fc.nat(255) });
    await fc.assert(
      fc.asyncProperty(fc.array(edit, { minLength: 1, maxLength: 5 }), fc.boolean(), async (edits, cut) => {
        const mutated = Uint8Array.from(bytes);
        for (const { at, value } of edits) mutated[at] = value;
        await writeFile(path, cut ? mutated.subarray(0, edits[0]?.at) : mutated);
        await collect(readRows([path], rl)).catch((error: unknown) => expect(error).toBeInstanceOf(InvalidInputError));
      }),
      { numRuns: 150 },
    );
  });
});

describe('tokenizeRows', () => {
  const prompts = (...texts: string[]): object[] => texts.map((prompt) => ({ ...row, prompt }));

  it('renders messages with the chat template and keeps text as it is', async () => {
    const path = await write('mixed.jsonl', [row, ...prompts('abc')]);
    const { dataset, counts } = await tokenizeRows(readRows([path], rl), tokenizer, options);
    expect(dataset.rows).toEqual([
      { dataSource: 'sums', prompt: 'user:abassistant:', groundTruth: '3', extraInfo: { index: 7 } },
      { dataSource: 'sums', prompt: 'abc', groundTruth: '3', extraInfo: { index: 7 } },
    ]);
    expect(tokenizer.decode(promptOf(dataset, 0))).toBe('user:abassistant:');
    expect(Array.from(promptOf(dataset, 1))).toEqual([0, 1, 2]);
    expect(counts).toEqual({ rows: 2, filtered: 0, truncated: 0, longest: 17 });
  });

  it('refuses, cuts or leaves out prompts over the limit, and counts', async () => {
    const path = await write('long.jsonl', prompts('abcdefg', 'abc'));
    const run = (change: Partial<TokenizeOptions>) =>
      tokenizeRows(readRows([path], rl), tokenizer, { ...options, maxLength: 5, ...change });
    await expect(run({})).rejects.toThrow(/row 1: the prompt has 7 tokens, data.max_prompt_length is 5/);
    for (const [truncation, text] of [
      ['left', 'cdefg'],
      ['right', 'abcde'],
      ['middle', 'abefg'],
    ] as const) {
      const { dataset, counts } = await run({ truncation });
      expect(tokenizer.decode(promptOf(dataset, 0))).toBe(text);
      expect(counts).toEqual({ rows: 2, filtered: 0, truncated: 1, longest: 7 });
    }
    expect((await run({ filterOverlong: true })).counts).toEqual({ rows: 1, filtered: 1, truncated: 0, longest: 7 });
    await expect(run({ filterOverlong: true, maxLength: 2 })).rejects.toThrow(
      /no rows are left: all 2 are over the limit of 2/,
    );
    expect((await run({ filterOverlong: true, maxLength: 9, maxSamples: 1 })).counts.rows).toBe(1);
  });

  it('ends responses with the end token and makes one example of every assistant turn', async () => {
    const turns = ['user', 'assistant', 'user', 'assistant'].map((role, i) => ({ role, content: 'abcd'[i] }));
    const path = await write('sft.jsonl', [{ prompt: 'a', response: 'b' }, { messages: turns }]);
    const { dataset } = await tokenizeRows(readRows([path], sft), tokenizer, { ...options, kind: 'sft' });
    const texts = dataset.rows.map((_, i) => [
      tokenizer.decode(promptOf(dataset, i)),
      tokenizer.decode(responseOf(dataset, i)),
    ]);
    expect(texts).toEqual([
      ['a', 'b<end>'],
      ['user:aassistant:', 'b<end>'],
      ['user:aassistant:b<end>user:cassistant:', 'd<end>'],
    ]);
  });

  it('names the row that the template refuses, and messages without a template', async () => {
    const path = await write('refused.jsonl', [row]);
    await expect(tokenizeRows(readRows([path], rl), tokenizer, { ...options, chatTemplate: 'none' })).rejects.toThrow(
      /row 1: expected a prompt of text.*data.chat_template is none/,
    );
    const strict = Object.create(tokenizer, { chatTemplate: { value: "{{ raise_exception('no') }}" } }) as Tokenizer;
    await expect(tokenizeRows(readRows([path], rl), strict, options)).rejects.toThrow(
      /row 1: chat template, line 1: no/,
    );
  });

  it('truncation keeps exactly the limit and a subsequence (property)', () => {
    fc.assert(
      fc.property(
        fc.array(fc.nat(99), { maxLength: 40 }),
        fc.integer({ min: 1, max: 45 }),
        fc.constantFrom('left', 'right', 'middle'),
        (ids, limit, side) => {
          const kept = truncate(Int32Array.from(ids), limit, side);
          expect(kept.length).toBe(Math.min(ids.length, limit));
          if (side !== 'right' && ids.length > 0) expect(kept.at(-1)).toBe(ids.at(-1));
          if (side === 'right' && ids.length > 0) expect(kept[0]).toBe(ids[0]);
        },
      ),
    );
  });
});
