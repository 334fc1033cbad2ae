import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { PauseError } from '../../../core/errors.ts';
import { packageRoot } from '../../../infra/home.ts';
import { packRows, readRows } from '../../../models/dataset.ts';
import { BlockCache, openDataset } from '../../../models/dataset-rows.ts';
import { openTokenizer } from '../../../models/tokenizer.ts';
import { rowSequences } from './row-sequences.ts';

const place = mkdtempSync(join(tmpdir(), 'petrel-row-sequences-'));
afterAll(() => rmSync(place, { recursive: true }));

/** The example's model, whose tokenizer got a token that the embedding has no row for. */
function modelWith(content: string): string {
  const folder = join(place, 'model');
  cpSync(join(packageRoot(), 'examples/01-arithmetic-grpo/base'), folder, { recursive: true });
  const path = join(folder, 'tokenizer.json');
  const tokenizer = JSON.parse(readFileSync(path, 'utf8')) as { added_tokens: object[] };
  const flags = { special: true, normalized: false, single_word: false, lstrip: false, rstrip: false };
  tokenizer.added_tokens.push({ id: 18, content, ...flags });
  writeFileSync(path, JSON.stringify(tokenizer));
  return folder;
}

it('a row with a token that the model has no embedding for pauses a run that has begun', async () => {
  const model = modelWith('<extra>');
  const tokenizer = await openTokenizer(model);
  const blocks: Uint8Array[] = [];
  const columns = {
    kind: 'rl',
    promptKey: 'prompt',
    responseKey: 'response',
    chosenKey: 'chosen',
    rejectedKey: 'rejected',
    unscored: true,
    rewardFnKey: 'data_source',
  } as const;
  const options = {
    kind: 'rl',
    maxLength: 100,
    truncation: 'error',
    filterOverlong: false,
    maxSamples: -1,
    chatTemplate: 'auto',
  } as const;
  const file = join(place, 'rows.jsonl');
  const row = (prompt: string) => JSON.stringify({ data_source: 'x', prompt });
  writeFileSync(file, `${row('1+1=')}\n${row('<extra>1=')}\n`);
  const { rules, counts } = await packRows(readRows([file], columns), tokenizer, options, async (bytes) => {
    blocks.push(Uint8Array.from(bytes));
  });
  const sha256 = 'a'.repeat(64) as never;
  const index = { format: 2, rows: counts.rows, blocks: [{ sha256, firstRow: 0, rows: 2 }], ...rules } as never;
  const stored = { format: 2, name: 'datasets/x', index, block: async () => blocks[0] as Uint8Array } as const;
  const dataset = openDataset(stored, new BlockCache(1 << 20));
  expect(await rowSequences(dataset, [0], tokenizer, model)).toHaveLength(1);
  const refused = rowSequences(dataset, [0, 1], tokenizer, model);
  await expect(refused).rejects.toBeInstanceOf(PauseError);
  await expect(refused).rejects.toThrow('row 1 (from 0): the model has embeddings for the tokens 0 to 17');
});
