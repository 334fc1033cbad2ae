import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openTokenizer } from './tokenizer.ts';

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
