/** Datasets of format 2, from rows to blocks in a store and back. */
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Store } from '../core/ports/store.ts';
import { keys } from '../core/records/keys.ts';
import { checkDataset, datasetFiles, readDataset, storeDataset } from '../log/inputs/datasets.ts';
import { openStore } from '../infra/store/open.ts';
import { WaitingBlocks } from '../log/inputs/waiting-blocks.ts';
import { encodeDatasetRows, encodeDatasetTokens, rowsFile, tokensFile } from '../models/dataset-fact.ts';
import { BlockCache, openDataset } from '../models/dataset-rows.ts';
import { packRows, readRows, tokenizeRows, verlColumns } from '../models/dataset.ts';
import type { PackOptions, Row } from '../models/dataset.ts';
import { usualBlockBytes } from '../models/dataset/blocks.ts';
import { openTokenizer } from '../models/tokenizer.ts';
import type { Tokenizer } from '../models/tokenizer.ts';

const letters = [...'abcdefghijklmnopqrstuvwxyz :?+-.0123456789é√😀'];
let folder: string;
let store: Store;
let tokenizer: Tokenizer;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'blocks-'));
  store = await openStore(join(folder, 'store'));
  writeFileSync(join(folder, 'tokenizer.json'), JSON.stringify(letterTokenizer()));
  const template =
    '{% for m in messages %}{{ m.role }}:{{ m.content }}{% endfor %}{% for t in tools or [] %}{{ t }}{% endfor %}{% if add_generation_prompt %}assistant:{% endif %}';
  writeFileSync(join(folder, 'tokenizer_config.json'), JSON.stringify({ eos_token: '<end>', chat_template: template }));
  tokenizer = await openTokenizer(folder);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function letterTokenizer() {
  const end = { id: 90, content: '<end>', single_word: false, lstrip: false, rstrip: false, normalized: false };
  const vocab = Object.fromEntries(
    [...letters, '[', ']', '{', '}', "'", ',', '<unk>'].map((letter, id) => [letter, id]),
  );
  const off = { truncation: null, padding: null, normalizer: null, pre_tokenizer: null, post_processor: null };
  const model = { type: 'BPE', dropout: null, unk_token: '<unk>', fuse_unk: false, byte_fallback: false, vocab };
  return {
    version: '1.0',
    ...off,
    decoder: { type: 'Fuse' },
    added_tokens: [{ ...end, special: true }],
    model: { ...model, continuing_subword_prefix: null, end_of_word_suffix: null, merges: [] },
  };
}

const options: PackOptions = {
  kind: 'rl',
  maxLength: 1e9,
  truncation: 'error',
  filterOverlong: false,
  maxSamples: -1,
  chatTemplate: 'auto',
  now: '2026-01-02T00:00:00',
};

async function* streamed(rows: readonly Row[]): AsyncGenerator<Row> {
  yield* rows;
}

async function pack(rows: AsyncIterable<Row>, change: Partial<PackOptions> = {}) {
  const blocks = new WaitingBlocks(join(folder, 'scratch'));
  try {
    const put = (bytes: Uint8Array, count: number) => blocks.add(bytes, count);
    const packed = await packRows(rows, tokenizer, { ...options, ...change }, put);
    return { digest: await blocks.store(store, packed.rules), packed };
  } finally {
    await blocks.remove();
  }
}

const open = async (digest: string, cacheBytes = 1 << 20) =>
  openDataset(await readDataset(store, digest), new BlockCache(cacheBytes));

const indexOf = async (digest: string) => {
  const stored = await readDataset(store, digest);
  if (stored.format !== 2) throw new Error('expected blocks');
  return stored.index;
};

const rowNamed = (prompt: Row['prompt'], number: number): Row => ({
  file: 'rows.jsonl',
  number,
  prompt,
  dataSource: 'sums',
  groundTruth: { answer: number },
  extraInfo: { index: number },
});

const text = fc.array(fc.constantFrom(...letters), { minLength: 1, maxLength: 300 }).map((all) => all.join(''));
const prompt = fc.oneof(
  text,
  text.map((content) => [{ role: 'user', content }]),
);
const someRows = fc
  .array(prompt, { minLength: 1, maxLength: 40 })
  .map((prompts) => prompts.map((one, i) => rowNamed(one, i + 1)));

describe('a dataset in blocks', () => {
  it('returns every row as if all rows were tokenised at once, in any order (property)', async () => {
    await fc.assert(
      fc.asyncProperty(
        someRows,
        fc.integer({ min: 40, max: 3000 }),
        fc.infiniteStream(fc.nat()),
        async (rows, blockBytes, picks) => {
          const { digest } = await pack(streamed(rows), { blockBytes });
          const { dataset: whole } = await tokenizeRows(streamed(rows), tokenizer, options);
          const dataset = await open(digest, 2000);
          const drawn = Array.from({ length: 30 }, () => (picks.next().value ?? 0) % rows.length);
          const sequences = await dataset.sequences(drawn, tokenizer);
          const prompts = await dataset.prompts(drawn, tokenizer);
          const facts = await dataset.facts(drawn);
          drawn.forEach((row, i) => {
            const [start, end] = [whole.promptOffsets[row], whole.promptOffsets[row + 1]];
            expect([...(sequences[i]?.prompt ?? [])]).toEqual([...whole.promptTokens.subarray(start, end)]);
            expect({ ...facts[i], prompt: prompts[i] }).toMatchObject({ ...whole.rows[row] });
          });
          expect(dataset.count).toBe(rows.length);
        },
      ),
      { numRuns: 60, seed: 42 },
    );
  });

  it('has a digest that depends only on the rows, not on how the file was read', async () => {
    const rows = Array.from({ length: 300 }, (_, i) => rowNamed(`${'é'.repeat(i % 70)}${i}`, i + 1));
    const file = join(folder, 'cut.jsonl');
    const line = ({ prompt: own, groundTruth, extraInfo }: Row) =>
      JSON.stringify({
        data_source: 'sums',
        prompt: own,
        reward_model: { ground_truth: groundTruth },
        extra_info: extraInfo,
      });
    writeFileSync(file, rows.map((row) => `${line(row)}\n`).join('\n'));
    const fromFile = await pack(readRows([file], { kind: 'rl', ...verlColumns }), { blockBytes: 2000 });
    async function* slowly() {
      for (const row of rows) {
        await new Promise(setImmediate);
        yield row;
      }
    }
    const fromRows = await pack(slowly(), { blockBytes: 2000 });
    expect(fromRows.digest).toBe(fromFile.digest);
    expect((await indexOf(fromRows.digest)).blocks.length).toBeGreaterThan(5);
    const other = await pack(streamed([...rows.slice(1), rows[0] as Row]), { blockBytes: 2000 });
    expect(other.digest).not.toBe(fromRows.digest);
  });

  it('keeps a row that is larger than a block in a block of its own', async () => {
    const large = 'é'.repeat(usualBlockBytes / 2 + 10);
    const rows = ['', large, ''].map((one, i) => ({ ...rowNamed('abc', i + 1), extraInfo: { text: one } }));
    const { digest } = await pack(streamed(rows));
    const { blocks } = await indexOf(digest);
    expect(blocks.map(({ rows: count }) => count)).toEqual([1, 1, 1]);
    expect(blocks[1]?.bytes).toBeGreaterThan(usualBlockBytes);
    const texts = (await (await open(digest)).facts([2, 1, 0])).map(({ extraInfo }) => extraInfo);
    expect(texts).toEqual([{ text: '' }, { text: large }, { text: '' }]);
    expect(existsSync(join(folder, 'scratch')) ? readdirSync(join(folder, 'scratch')) : []).toEqual([]);
  });

  it('deletes blocks that a killed process left a day ago, and no others', async () => {
    const scratch = join(folder, 'scratch');
    const [old, young, other] = ['rows-1-00000001', 'rows-1-00000002', 'models'].map((name) => join(scratch, name));
    for (const path of [old, young, other]) mkdirSync(path ?? '', { recursive: true });
    const dayAgo = Date.now() / 1000 - 25 * 60 * 60;
    for (const path of [old, other]) utimesSync(path ?? '', dayAgo, dayAgo);
    const rows = ['abc', 'defg'].map((one, i) => rowNamed(one, i + 1));
    await pack(streamed(rows), { blockBytes: 50 });
    expect(readdirSync(scratch).sort()).toEqual(['models', 'rows-1-00000002']);
    rmSync(scratch, { recursive: true });
  });

  it('keeps what a template prints: 1.0, large integers, keys that look like numbers', async () => {
    const file = join(folder, 'exact.jsonl');
    const tools = '[{"b":1.0,"10":12345678901234567890,"2":-0.0,"e":1e2}]';
    writeFileSync(
      file,
      `{"data_source":"s","prompt":[{"role":"user","content":"x"}],"tools":${tools},"reward_model":{"ground_truth":1.0}}\n`,
    );
    const rows = () => readRows([file], { kind: 'rl', ...verlColumns });
    const { digest } = await pack(rows());
    const { dataset: whole } = await tokenizeRows(rows(), tokenizer, options);
    const dataset = await open(digest);
    expect(await dataset.prompts([0], tokenizer)).toEqual([whole.rows[0]?.prompt]);
    expect(whole.rows[0]?.prompt).toContain("'b': 1.0, '10': 12345678901234567890, '2': -0.0, 'e': 100.0");
    expect(await dataset.facts([0])).toMatchObject([{ groundTruth: 1 }]);
  });

  it('tokenises supervised rows as before: prompt, response, end token, one limit for both', async () => {
    const rows = Array.from({ length: 20 }, (_, i) => ({ ...rowNamed('abcdef', i), response: 'x'.repeat(i) }));
    const sft = { kind: 'sft', maxLength: 12, truncation: 'left' } as const;
    const { digest } = await pack(streamed(rows), sft);
    const { dataset: whole } = await tokenizeRows(streamed(rows), tokenizer, { ...options, ...sft });
    const found = await (await open(digest)).sequences([...rows.keys()], tokenizer);
    found.forEach(({ prompt: own, response }, row) => {
      expect([...own]).toEqual([
        ...whole.promptTokens.subarray(whole.promptOffsets[row], whole.promptOffsets[row + 1]),
      ]);
      const [start, end] = [whole.responseOffsets?.[row], whole.responseOffsets?.[row + 1]];
      expect([...(response ?? [])]).toEqual([...(whole.responseTokens?.subarray(start, end) ?? [])]);
    });
  });
});

describe('prompts over the limit', () => {
  const rows = Array.from({ length: 900 }, (_, i) => rowNamed('a'.repeat(1 + (i % 10)), i + 1));

  it('are left out of every block when they are filtered: draws number the rows that are kept', async () => {
    const { digest, packed } = await pack(streamed(rows), { maxLength: 4, filterOverlong: true, blockBytes: 3000 });
    expect(packed.counts).toMatchObject({ rows: 360, filtered: 540, truncated: 0, longest: 10 });
    const dataset = await open(digest);
    const facts = await dataset.facts([...Array(360).keys()]);
    expect(facts.map(({ extraInfo }) => (extraInfo as { index: number }).index)).toEqual(
      rows.filter(({ prompt: own }) => own.length <= 4).map(({ number }) => number),
    );
    expect(dataset.longestPrompt).toBe(4);
  });

  it('are refused by file and row before a run, in the first block', async () => {
    await expect(pack(streamed(rows), { maxLength: 4 })).rejects.toThrow(
      /rows.jsonl, row 5: the prompt has 5 tokens, data.max_prompt_length is 4/,
    );
  });

  it('are refused when they are drawn, beyond the first block, or cut if the recipe says so', async () => {
    const late = [...rows.map((row) => ({ ...row, prompt: 'ab' })), rowNamed('abcdefgh', 901)];
    const refusing = await open((await pack(streamed(late), { maxLength: 4, blockBytes: 3000 })).digest);
    expect(refusing.longestPrompt).toBe(4);
    await expect(refusing.sequences([900], tokenizer)).rejects.toThrow(
      /row 900 \(from 0\): the prompt has 8 tokens, data.max_prompt_length is 4/,
    );
    const cut = await pack(streamed(late), { maxLength: 4, blockBytes: 3000, truncation: 'left' });
    const [last] = await (await open(cut.digest)).sequences([900], tokenizer);
    expect(tokenizer.decode(last?.prompt ?? [])).toBe('efgh');
  });

  it('are refused by file and row before a run when they are far over it, in every block', async () => {
    const late = [...rows.map((row) => ({ ...row, prompt: 'ab' })), rowNamed('a'.repeat(30), 901)];
    const limited = { maxLength: 4, blockBytes: 3000 };
    await expect(pack(streamed(late), limited)).rejects.toThrow(/rows.jsonl, row 901: the prompt has 30 tokens/);
    const cut = await pack(streamed(late), { ...limited, truncation: 'right' });
    expect(cut.packed.counts.rows).toBe(901);
  });

  it('do not name the limit in the digest when no row is over it', async () => {
    const short = await pack(streamed(rows), { maxLength: 10 });
    expect((await pack(streamed(rows), { maxLength: 500, truncation: 'left' })).digest).toBe(short.digest);
  });
});

describe('a damaged dataset', () => {
  const rows = Array.from({ length: 40 }, (_, i) => rowNamed(`row ${i}`, i + 1));

  it.each([
    ['flipped', (path: string) => writeFileSync(path, flipped(readFileSync(path))), /does not match its name/],
    ['missing', (path: string) => rmSync(path), /is missing/],
    [
      'longer',
      (path: string) => writeFileSync(path, Buffer.concat([readFileSync(path), Buffer.from('x')])),
      /does not match/,
    ],
  ])('names the block that is %s, and the other rows are read', async (_, harm, message) => {
    const { digest } = await pack(streamed(rows), { blockBytes: 1000 });
    const { blocks } = await indexOf(digest);
    const [key] = blocks.slice(1, 2).map(({ sha256 }) => keys.dataset(digest, `${sha256}.jsonl`));
    harm(store.localPath(key ?? '') ?? '');
    const dataset = await open(digest);
    expect(await dataset.facts([0])).toHaveLength(1);
    const reading = dataset.facts([0, blocks[1]?.firstRow ?? 0]);
    await expect(reading).rejects.toMatchObject({ code: 'DamagedDataset', where: key });
    await expect(dataset.facts([blocks[1]?.firstRow ?? 0])).rejects.toThrow(message);
    await expect(checkDataset(store, digest)).rejects.toMatchObject({ code: 'DamagedDataset', where: key });
    await pack(streamed(rows), { blockBytes: 1000 });
    expect(await checkDataset(store, digest)).toBeGreaterThan(40 * 20);
  });

  it('reports an index that does not match its name', async () => {
    const { digest } = await pack(streamed(rows));
    const key = keys.dataset(digest, 'index.json');
    await store.put(key, flipped((await store.get(key)) ?? new Uint8Array()));
    await expect(readDataset(store, digest)).rejects.toMatchObject({ code: 'DamagedDataset', where: key });
    expect(await datasetFiles(store, digest)).toBeUndefined();
  });
});

describe('other readers of datasets', () => {
  it('recognises the files of both formats by their digest', async () => {
    const rows = Array.from({ length: 40 }, (_, i) => rowNamed(`file ${i}`, i + 1));
    const { digest } = await pack(streamed(rows), { blockBytes: 1000 });
    await store.put(keys.dataset(digest, 'mine.txt'), new Uint8Array(3));
    const { blocks } = await indexOf(digest);
    expect(await datasetFiles(store, digest)).toEqual([...blocks.map(({ sha256 }) => `${sha256}.jsonl`), 'index.json']);
  });

  it('reads rows of format 1 through the same interface', async () => {
    const rows = ['abc', 'defg'].map((one, i) => rowNamed(one, i + 1));
    const { dataset: whole } = await tokenizeRows(streamed(rows), tokenizer, options);
    const digest = await storeDataset(store, {
      [tokensFile]: encodeDatasetTokens(whole),
      [rowsFile]: encodeDatasetRows(whole),
    });
    const dataset = await open(digest);
    const [sequence] = await dataset.sequences([1], tokenizer);
    expect([dataset.count, dataset.longestPrompt, tokenizer.decode(sequence?.prompt ?? [])]).toEqual([2, 4, 'defg']);
    expect(await dataset.prompts([1, 0], tokenizer)).toEqual(['defg', 'abc']);
    expect(await dataset.facts([0])).toMatchObject([{ dataSource: 'sums', groundTruth: { answer: 1 } }]);
  });

  it('keeps at most the given number of bytes of blocks in memory', async () => {
    const rows = Array.from({ length: 400 }, (_, i) => rowNamed('a'.repeat(100), i + 1));
    const { digest } = await pack(streamed(rows), { blockBytes: 4000 });
    const cache = new BlockCache(10_000);
    const dataset = openDataset(await readDataset(store, digest), cache);
    for (const row of rows.keys()) {
      await dataset.facts([row, (row * 37) % 400]);
      expect(cache.bytes).toBeLessThanOrEqual(10_000);
    }
    expect(cache.bytes).toBeGreaterThan(4000);
  });
});

function flipped(bytes: Uint8Array): Uint8Array {
  const hurt = Uint8Array.from(bytes);
  hurt[hurt.length >> 1] = (hurt[hurt.length >> 1] ?? 0) ^ 1;
  return hurt;
}
