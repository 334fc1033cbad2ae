import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, it, vi } from 'vitest';
import { errorToJson } from '../../core/errors.ts';
import { parseRecipe } from '../../core/recipe/index.ts';
import { checkedRows } from './rows.ts';

const place = mkdtempSync(join(tmpdir(), 'petrel-rows-'));
afterAll(() => rmSync(place, { recursive: true }));
afterEach(() => vi.unstubAllEnvs());

/** How many rows are accepted, or the error of the first one that is not. */
async function read(...sources: readonly string[]): Promise<unknown> {
  return readAs({}, ...sources);
}

async function readAs(keys: object, ...sources: readonly string[]): Promise<unknown> {
  const file = join(place, 'rows.jsonl');
  const row = (data_source: string) => ({ data_source, prompt: '1+1=', reward_model: { ground_truth: '2' } });
  writeFileSync(file, sources.map((source) => `${JSON.stringify(row(source))}\n`).join(''));
  const recipe = parseRecipe({ model: { path: './model' }, data: { train_files: file }, ...keys });
  let count = 0;
  try {
    for await (const _ of checkedRows(recipe, 'train')) count += 1;
  } catch (error) {
    return errorToJson(error);
  }
  return count;
}

describe('rows that choose their scorers', () => {
  it('are refused at the first one without a scorer, by its number', async () => {
    expect(await read('openai/gsm8k', 'math_dapo', 'aime24')).toBe(3);
    expect(await read('openai/gsm8k', 'elsewhere')).toMatchObject({
      code: 'InvalidInput',
      message: expect.stringContaining('no scorer for data_source "elsewhere"'),
      where: expect.stringMatching(/rows\.jsonl.*2/),
    });
  });

  it('are refused where their scorer needs packages that are not here, with what to type', async () => {
    vi.stubEnv('PETREL_HOME', place);
    expect(await read('math', 'numina_olympiads')).toMatchObject({
      code: 'NoScorerPackages',
      where: expect.stringMatching(/rows\.jsonl.*2/),
      message: expect.stringContaining('the scorer prime_math needs Python packages'),
      hint: expect.stringContaining('--scorers'),
    });
  });

  it('are refused where they choose a scorer that needs a sandbox, and none can be built', async () => {
    vi.stubEnv('PATH', place);
    expect(await read('math', 'taco')).toMatchObject({
      code: 'NoSandbox',
      where: expect.stringMatching(/rows\.jsonl.*2/),
      hint: expect.stringContaining('apt-get install bubblewrap'),
    });
  });

  it.each(['taco', 'numina_olympiads', 'hiyouga/geometry3k', 'math_verify'])(
    'are refused where %s chooses a scorer with time limits in a deterministic run',
    async (source) => {
      expect(await readAs({ deterministic: true }, 'math', source)).toMatchObject({
        code: 'InvalidInput',
        where: expect.stringMatching(/rows\.jsonl.*2/),
        message: expect.stringContaining('is not declared deterministic'),
        hint: expect.stringContaining('deterministic: replay'),
      });
    },
  );

  it('are accepted in a deterministic run where every scorer is declared so', async () => {
    expect(await readAs({ deterministic: true }, 'math', 'openai/gsm8k', 'exact', 'math_symbolic', 'rlla')).toBe(5);
  });
});

describe('rows whose recipe names the scorer', () => {
  it('are refused at the first ground truth that it cannot use', async () => {
    expect(await readAs({ reward: { scorer: 'code' } }, 'any')).toMatchObject({
      where: expect.stringMatching(/rows\.jsonl.*1/),
      message: expect.stringContaining('the ground truth of a program is JSON text with its tests'),
    });
  });
});
