// @module-tag long
/**
 * `petrel plan` refuses everything that `petrel run` refuses, with the same code and text, and leaves no files behind.
 */
import { cpSync, existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PetrelUser, root } from './petrel.ts';

const user = new PetrelUser();
afterAll(() => user.remove());

/** A hub without models. */
let hub: Server;
beforeAll(async () => {
  hub = createServer((_, response) => response.writeHead(404).end('{"error":"Repository not found"}'));
  await new Promise<void>((listening) => hub.listen(0, '127.0.0.1', listening));
});
afterAll(() => hub.close());
const hubUrl = (): string => `http://127.0.0.1:${(hub.address() as AddressInfo).port}`;

interface Plan {
  readonly checks: readonly { readonly status: string; readonly code?: string; readonly detail: string }[];
}

interface Case {
  readonly what: string;
  /** Sections of the recipe that are wrong. */
  readonly recipe?: Readonly<Record<string, object | string>>;
  readonly files?: Readonly<Record<string, string>>;
  readonly env?: () => Readonly<Record<string, string>>;
  readonly code?: string;
  /** A part of the text of both errors. */
  readonly says: RegExp;
}

const good = { prompt: '1+1=', data_source: 'exact', reward_model: { ground_truth: '2' } };
const rows = (...list: readonly object[]): string => list.map((row) => `${JSON.stringify(row)}\n`).join('');
const fifth = (row: object): string => rows(good, good, good, good, row);
const scoredBy = (file: string, more: object = {}) => ({
  reward: { scorer: null, custom_reward_function: { path: `./${file}`, ...more } },
});
const { reward_model: _, ...untold } = good;
const { data_source: __, ...sourceless } = good;

const cases: readonly Case[] = [
  {
    what: 'a row without its ground truth',
    files: { 'train.jsonl': fifth(untold) },
    says: /row 5: expected reward_model.ground_truth/,
  },
  {
    what: 'a row without data_source',
    files: { 'train.jsonl': fifth(sourceless) },
    says: /row 5: data_source: expected text/,
  },
  {
    what: 'a row without its prompt',
    recipe: { data: { prompt_key: 'question' } },
    says: /row 1: question: expected text/,
  },
  {
    what: 'a pointer of Git LFS',
    files: { 'train.jsonl': `version https://git-lfs.github.com/spec/v1\noid sha256:${'0'.repeat(64)}\nsize 9\n` },
    says: /train\.jsonl: expected rows of JSON or Parquet; this is a pointer of Git LFS/,
  },
  {
    what: "GSM8K's own columns",
    recipe: { data: { prompt_key: 'question' } },
    files: { 'train.jsonl': rows({ question: '1+1?', answer: '#### 2' }) },
    says: /row 1: expected reward_model\.ground_truth.*; this is a row of GSM8K/,
  },
  {
    what: 'half a character in a prompt',
    files: { 'train.jsonl': fifth({ ...good, prompt: '1\ud800+1=' }) },
    says: /row 5: prompt: the text has half a character/,
  },
  {
    what: 'a row that is nested too deep',
    files: { 'train.jsonl': `${rows(good)}{"extra_info": ${'['.repeat(5_000)}${']'.repeat(5_000)}}\n` },
    says: /row 2: .*nested at most 1000 deep/,
  },
  {
    what: 'a row that is not JSON',
    files: { 'train.jsonl': `${rows(good)}{"prompt": \n` },
    says: /row 2: expected a JSON object/,
  },
  {
    what: 'a data source without a scorer',
    recipe: { reward: { scorer: null } },
    files: { 'train.jsonl': fifth({ ...good, data_source: 'unheard/of' }) },
    says: /row 5: no scorer for data_source "unheard\/of"/,
  },
  {
    what: 'a Parquet file without the prompt column',
    recipe: { data: { train_files: './rows.parquet', prompt_key: 'question' } },
    says: /rows\.parquet, row 1: question: expected text/,
  },
  { what: 'a prompt over the limit', recipe: { data: { max_prompt_length: 2 } }, says: /the prompt has \d+ tokens/ },
  {
    what: 'a data file that is not there',
    recipe: { data: { train_files: './none.jsonl' } },
    says: /none\.jsonl: there is no such file/,
  },
  {
    what: 'a Parquet file that is not there',
    recipe: { data: { train_files: './none.parquet' } },
    says: /none\.parquet: there is no such file/,
  },
  {
    what: 'a broken validation row',
    recipe: { data: { val_files: './val.jsonl' } },
    files: { 'val.jsonl': fifth(untold) },
    says: /val\.jsonl, row 5/,
  },
  {
    what: 'a scorer that petrel does not have',
    recipe: { reward: { scorer: 'last_intger' } },
    says: /unknown scorer "last_intger"/,
  },
  { what: 'a scorer file that is not there', recipe: scoredBy('none.py'), says: /cannot read .*none\.py/ },
  {
    what: 'a TypeScript scorer with a syntax error',
    recipe: scoredBy('bad.ts'),
    files: { 'bad.ts': 'export function computeScore() {\n  return 1 +;\n}\n' },
    says: /^the scorer cannot be loaded: SyntaxError: [^\n]* \(\.\/bad\.ts:2:\d+\)$/,
  },
  {
    what: 'a Python scorer with a syntax error',
    recipe: scoredBy('bad.py'),
    files: { 'bad.py': 'def compute_score(data_source):\n    return 1 +\n' },
    says: /^the scorer cannot be loaded: SyntaxError: [^\n]* \(\.\/bad\.py:2:\d+\)$/,
  },
  {
    what: 'a scorer without the function',
    recipe: scoredBy('other.py'),
    files: { 'other.py': 'def score(x):\n    return 1\n' },
    says: /^the scorer cannot be loaded: AttributeError: \.\/other\.py has no function compute_score/,
  },
  {
    what: 'a scorer that imports a file that is not there',
    recipe: scoredBy('helped.py'),
    files: { 'helped.py': 'import helper\ndef compute_score(**_):\n    return 1\n' },
    says: /^the scorer imports helper, which is neither in its folder nor installed$/,
  },
  {
    what: 'a scorer that throws on the first row',
    recipe: scoredBy('throws.js'),
    files: { 'throws.js': 'export function computeScore() {\n  null.length;\n}\n' },
    says: /^the scorer fails on the first row.*TypeError: .* \(\.\/throws\.js:2:8\)$/,
  },
  {
    what: 'a scorer that gives no number',
    recipe: scoredBy('words.py'),
    files: { 'words.py': 'def compute_score(**_):\n    return "good"\n' },
    says: /^the scorer fails on the first row.*finite number/,
  },
  {
    what: 'a store at the path of a file',
    recipe: { store: './base/config.json/store' },
    says: /^store: expected a folder/,
  },
  {
    what: 'a store among other files',
    recipe: { store: './base' },
    says: /^store: expected a petrel store.*it holds other files/,
  },
  {
    what: 'a store where no folder can be created',
    recipe: { store: '/proc/petrel/store' },
    says: /^store: expected a folder/,
  },
  { what: 'a store of an unknown kind', recipe: { store: 'gs://bucket/runs' }, says: /gs:\/\/bucket\/runs/ },
  {
    what: 'an invalid hub name',
    recipe: { model: { path: 'nobody/nothing' } },
    env: () => ({ HF_ENDPOINT: hubUrl() }),
    says: /has no model nobody\/nothing at main/,
  },
  {
    what: 'a hub out of reach',
    recipe: { model: { path: 'nobody/nothing' } },
    env: () => ({ HF_ENDPOINT: 'http://127.0.0.1:1' }),
    code: 'HubUnreachable',
    says: /127\.0\.0\.1:1 cannot be read/,
  },
  {
    what: 'a model of the hub that is on no disk, offline',
    recipe: { model: { path: 'nobody/nothing' } },
    env: () => ({ HF_ENDPOINT: hubUrl(), HF_HUB_OFFLINE: '1', HF_HOME: join(user.folder, 'hf') }),
    says: /nobody\/nothing at main cannot be fetched, because HF_HUB_OFFLINE/,
  },
  {
    what: 'an unknown name on ModelScope',
    recipe: { model: { path: 'modelscope:nobody/nothing' } },
    env: () => ({ MODELSCOPE_ENDPOINT: hubUrl() }),
    says: /has no model nobody\/nothing at master/,
  },
  {
    what: 'a model of ModelScope that is on no disk, offline',
    recipe: { model: { path: 'modelscope:nobody/nothing@v2' } },
    env: () => ({ MODELSCOPE_ENDPOINT: hubUrl(), HF_HUB_OFFLINE: '1', MODELSCOPE_CACHE: join(user.folder, 'ms') }),
    says: /modelscope:nobody\/nothing at v2 cannot be fetched, because HF_HUB_OFFLINE/,
  },
  {
    what: 'a folder without a model',
    recipe: { model: { path: './elsewhere' } },
    says: /elsewhere: there is no config\.json/,
  },
  {
    what: 'an architecture that is not supported',
    recipe: { model: { path: './mixtral' } },
    says: /MixtralForCausalLM/,
  },
];

describe('plan refuses, as run does,', () => {
  it.each(cases)('$what', async ({ recipe = {}, files = {}, env, code = 'InvalidInput', says }) => {
    rmSync(user.folder, { recursive: true });
    mkdirSync(user.folder);
    user.recipe('recipe.yaml', recipe);
    for (const [name, text] of Object.entries(files)) user.write(name, text);
    cpSync(join(root, 'models/dataset/fixtures/verl-snappy.parquet'), join(user.folder, 'rows.parquet'));
    cpSync(join(root, 'tests/golden/models/mixtral'), join(user.folder, 'mixtral'), { recursive: true });
    cpSync(join(user.folder, 'base/tokenizer.json'), join(user.folder, 'mixtral/tokenizer.json'));
    const options = env === undefined ? {} : { env: env() };
    const planned = await user.petrelWith(options, 'plan', 'recipe.yaml', '--json');
    const refused = planned.code === 8 ? planned.json<Plan>().checks.filter(({ status }) => status === 'failed') : [];
    const ran = await user.petrelWith(options, 'run', 'recipe.yaml', '--detach', '--json');
    const { error } = ran.json<{ error: { code: string; message: string } }>();
    expect({ code: error.code, says: error.message }).toEqual({ code, says: expect.stringMatching(says) });
    expect(refused.map((check) => ({ code: check.code, message: check.detail }))).toEqual([
      { code: error.code, message: error.message },
    ]);
  });

  it('and leaves no store, no stack and no object', async () => {
    user.recipe();
    const other = new PetrelUser();
    try {
      other.recipe();
      other.write('empty/keep', '');
      rmSync(join(other.folder, 'empty/keep'));
      for (const store of ['./deep/in/store', './empty']) {
        const planned = await other.petrel('plan', 'recipe.yaml', `store=${store}`, '--json');
        expect(planned.code, planned.out).toBe(0);
      }
      expect(existsSync(join(other.folder, 'deep'))).toBe(false);
      expect(readdirSync(join(other.folder, 'empty'))).toEqual([]);
      expect(readdirSync(other.home).sort()).toEqual(['fencing-stores.json', 'toolchain']);
    } finally {
      await other.remove();
    }
  });
});
