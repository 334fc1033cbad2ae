import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import type { InvalidInputError } from '../core/errors.ts';
import { openTokenizerThread } from './tokenizer-thread.ts';
import { openTokenizer } from './tokenizer.ts';

const builtTokenizerThread = join(import.meta.dirname, '../dist/models/tokenizer-thread.js');

/** Byte fallback and a few words: enough to see pieces of characters. */
const vocabulary = { a: 0, b: 1, '▁': 2, '<0xF0>': 3, '<0x9F>': 4, '<0x98>': 5, '<0x80>': 6, ab: 7 };
const tokenizerJson = {
  version: '1.0',
  truncation: { max_length: 1, strategy: 'LongestFirst', stride: 0, direction: 'Right' },
  padding: null,
  added_tokens: [
    { id: 8, content: '<s>', single_word: false, lstrip: false, rstrip: false, normalized: false, special: true },
    { id: 9, content: '<end>', single_word: false, lstrip: false, rstrip: false, normalized: false, special: true },
    { id: 10, content: '<tool>', single_word: false, lstrip: false, rstrip: false, normalized: false, special: false },
  ],
  normalizer: null,
  pre_tokenizer: null,
  post_processor: null,
  decoder: { type: 'Sequence', decoders: [{ type: 'ByteFallback' }, { type: 'Fuse' }] },
  model: {
    type: 'BPE',
    dropout: null,
    unk_token: null,
    continuing_subword_prefix: null,
    end_of_word_suffix: null,
    fuse_unk: false,
    byte_fallback: true,
    vocab: vocabulary,
    merges: [['a', 'b']],
  },
};

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tokenizer-'));
  await writeFile(join(folder, 'tokenizer.json'), JSON.stringify(tokenizerJson));
  await writeFile(
    join(folder, 'tokenizer_config.json'),
    JSON.stringify({ eos_token: { content: '<end>' }, chat_template: [{ name: 'default', template: 'T' }] }),
  );
  await writeFile(join(folder, 'special_tokens_map.json'), JSON.stringify({ bos_token: '<s>' }));
  await writeFile(join(folder, 'config.json'), JSON.stringify({ eos_token_id: 9 }));
  await writeFile(join(folder, 'generation_config.json'), JSON.stringify({ eos_token_id: [10, 9] }));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

describe('openTokenizer', () => {
  it('collects special tokens, the union of stop tokens and the template', async () => {
    const tokenizer = await openTokenizer(folder);
    expect(tokenizer).toMatchObject({ vocabSize: 11, bosId: 8, eosId: 9, padId: 9, chatTemplate: 'T' });
    expect(tokenizer.stopTokens).toEqual([9, 10]);
  });

  it('ignores a truncation left in the file', async () => {
    const tokenizer = await openTokenizer(folder);
    expect(Array.from(await tokenizer.encode('aba<end>'))).toEqual([7, 0, 9]);
  });

  it('drops special tokens only, and ignores unknown ids', async () => {
    const tokenizer = await openTokenizer(folder);
    expect(tokenizer.decode([8, 0, 10, 9, 99, -1])).toBe('<s>a<tool><end>');
    expect(tokenizer.decode([8, 0, 10, 9], { skipSpecial: true })).toBe('a<tool>');
  });

  it('streams whole texts, and marks only text as stable that no later token changes', async () => {
    const stream = (await openTokenizer(folder)).stream();
    expect([stream.push(0), stream.push(3), stream.push(4), stream.push(5)]).toEqual([
      'a',
      'a\ufffd',
      'a\ufffd\ufffd',
      'a\ufffd\ufffd\ufffd',
    ]);
    expect(stream.stable).toBeLessThanOrEqual(1);
    expect(stream.push(6)).toBe('a😀');
    expect(stream.push(1)).toBe('a😀b');
    expect(stream.text.slice(0, stream.stable)).toBe('a😀');
  });

  it('is opened once, and again when a file changes', async () => {
    const first = await openTokenizer(folder);
    expect(await openTokenizer(folder)).toBe(first);
    await writeFile(join(folder, 'generation_config.json'), JSON.stringify({ eos_token_id: [10, 9, 7] }));
    expect((await openTokenizer(folder)).stopTokens).toEqual([7, 9, 10]);
  });

  it('names the missing or damaged file', async () => {
    await expect(openTokenizer(join(folder, 'nowhere'))).rejects.toThrow(/there is no tokenizer.json/);
    const broken = await mkdtemp(join(tmpdir(), 'tokenizer-'));
    await writeFile(join(broken, 'tokenizer.json'), '{"model": 1}');
    await expect(openTokenizer(broken)).rejects.toThrow(/not a valid tokenizer/);
    await rm(broken, { recursive: true });
  });
});

describe('openTokenizerThread', () => {
  const texts = ['aba<end>', '', 'ab<tool>b'];

  it.each([{}, { addSpecial: true }])('encodes and counts as on the main thread: %o', async (options) => {
    const [here, there] = [await openTokenizer(folder), await openTokenizerThread(folder)];
    const encoded = await here.encodeBatch(texts, options);
    expect(await there.encodeBatch(texts, options)).toEqual(encoded);
    expect(await there.lengths(texts, options)).toEqual(encoded.map((ids) => ids.length));
    expect(await there.decodeBatch(encoded, { skipSpecial: true })).toEqual(
      encoded.map((ids) => here.decode(ids, { skipSpecial: true })),
    );
    const { specialTokens, chatTemplate, vocabSize, stopTokens } = here;
    expect({ ...there }).toEqual({ specialTokens, chatTemplate, vocabSize, stopTokens });
  });

  it('says what is wrong as on the main thread, and goes on with other folders', async () => {
    const nowhere = join(folder, 'nowhere');
    const { code, message, hint, where } = await rejectionOf<InvalidInputError>(openTokenizer(nowhere));
    expect(await rejectionOf(openTokenizerThread(nowhere))).toMatchObject({ code, message, hint, where });
    expect(await (await openTokenizerThread(folder)).lengths(texts)).toEqual([3, 0, 3]);
  });

  it('reads a folder again whose files have changed', async () => {
    const changed = await mkdtemp(join(tmpdir(), 'tokenizer-'));
    onTestFinished(() => rm(changed, { recursive: true, force: true }));
    await writeFile(join(changed, 'tokenizer.json'), JSON.stringify(tokenizerJson));
    expect((await openTokenizerThread(changed)).chatTemplate).toBeUndefined();
    await writeFile(join(changed, 'chat_template.jinja'), 'new');
    expect((await openTokenizerThread(changed)).chatTemplate).toBe('new');
  });

  it('lets its process end', async () => {
    const program = `import { openTokenizerThread } from ${JSON.stringify(builtTokenizerThread)};
      console.log((await (await openTokenizerThread(${JSON.stringify(folder)})).lengths(['ab'])).join());`;
    const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', program]);
    expect(stdout).toBe('1\n');
  });
});

async function rejectionOf<E extends Error>(promise: Promise<unknown>): Promise<E> {
  return promise.then(
    () => expect.fail('expected a rejection'),
    (error: E) => error,
  );
}
