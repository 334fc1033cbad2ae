/** `petrel init`: its files pass `petrel plan`, and it overwrites nothing. */
import { execFileSync } from 'node:child_process';
import { copyFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { additions, PetrelUser, root } from './petrel.ts';

const user = new PetrelUser();
afterAll(() => user.remove());
const base = join(root, 'examples/01-arithmetic-grpo/base');
const fixture = 'models/dataset/fixtures/verl-snappy.parquet';

async function init(...words: readonly string[]): Promise<string[]> {
  const made = await user.petrel('init', ...words, '--json');
  expect(made.code, made.out + made.err).toBe(0);
  return made.json<{ files: string[] }>().files.map((file) => file.slice(user.folder.length + 1));
}

async function expectReady(folder: string, ...words: readonly string[]): Promise<void> {
  const planned = await user.petrel('plan', folder, ...words, '--json');
  expect(planned.code, planned.out).toBe(0);
}

it('from nothing: a recipe, rows and a scorer that scores its test row', async () => {
  expect(await init('new')).toEqual(['new/recipe.yaml', 'new/train.jsonl', 'new/scorer.py']);
  await expectReady('new');
  const said = execFileSync('python3', [join(user.folder, 'new/scorer.py')], { encoding: 'utf8' });
  expect(said).toContain("'score': 1.0");
});

it('from rows, a model and a scorer', async () => {
  user.write('rows.jsonl', additions(24));
  user.write('mine.py', 'def compute_score(**_):\n    return 1.0\n');
  expect(await init('given', '--data', 'rows.jsonl', '--model', base, '--reward', 'mine.py')).toEqual([
    'given/recipe.yaml',
  ]);
  expect(user.read('given/recipe.yaml')).toMatch(
    /train_files: \.\.\/rows\.jsonl[\s\S]*train_batch_size: 16[\s\S]*path: \.\.\/mine\.py/,
  );
  await expectReady('given');
  await init('named', '--data', 'rows.jsonl', '--model', base, '--reward', 'exact');
  await expectReady('named');
});

it("from GSM8K's rows, and from Parquet", async () => {
  copyFileSync(join(root, 'examples/06-gsm8k/train.jsonl'), join(user.folder, 'questions.jsonl'));
  await init('asked', '--data', 'questions.jsonl');
  expect(user.read('asked/recipe.yaml')).toMatch(/format: gsm8k[\s\S]*chat_template: none[\s\S]*scorer: null/);
  await expectReady('asked');
  copyFileSync(join(root, fixture), join(user.folder, 'rows.parquet'));
  await init('columns', '--data', 'rows.parquet', '--model', 'org/name');
  expect(user.read('columns/recipe.yaml')).toMatch(/path: org\/name[\s\S]*train_files: \.\.\/rows\.parquet/);
});

it('overwrites nothing, and writes nothing when one file is there', async () => {
  user.write('full/scorer.py', 'mine\n');
  const refused = await user.petrel('init', 'full');
  expect(refused).toMatchObject({ code: 5, err: expect.stringContaining('scorer.py') });
  expect(readdirSync(join(user.folder, 'full'))).toEqual(['scorer.py']);
  expect(user.read('full/scorer.py')).toBe('mine\n');
});

it.each([
  [['--data', 'none.jsonl'], /none\.jsonl: there is no such file/],
  [['--model', './none'], /there is no folder \.\/none/],
  [['--reward', 'gsm9k'], /got gsm9k[\s\S]*gsm8k/],
])('refuses %j', async (words, says) => {
  const refused = await user.petrel('init', 'wrong', ...words);
  expect(refused).toMatchObject({ code: 2, err: expect.stringMatching(says) });
});
