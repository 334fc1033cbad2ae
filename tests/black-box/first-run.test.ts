import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { PetrelUser } from './petrel.ts';

describe('a first run', () => {
  const user = PetrelUser.onLentStack();
  afterAll(() => user.remove());

  it('ends completed, and its ledger is verified', async () => {
    user.recipe();
    const run = await user.petrel('run', 'recipe.yaml', '--name', 'first', '--wait', '--json');
    expect(run.code, run.err).toBe(0);
    const verified = await user.petrel('ledger', 'verify', 'first', '--json');
    expect(verified.code, verified.out).toBe(0);
  });

  it('is refused before anything is written when set-up has not run for this home', async () => {
    user.recipe();
    const elsewhere = { env: { PETREL_HOME: join(user.folder, 'empty-home') } };
    const run = await user.petrelWith(elsewhere, 'run', 'recipe.yaml');
    expect(run.code).toBe(2);
    expect(run.err).toContain('hint: npm run setup');
    expect((await user.petrelWith(elsewhere, 'ls', '--json')).json()).toEqual([]);
  });

  it('is warned about when the tokenizer drops most of the prompts', async () => {
    user.recipe('words.yaml', { data: { train_files: './words.jsonl' } });
    const row = { prompt: 'What is 5+4=', data_source: 'exact', reward_model: { ground_truth: '9' } };
    user.write('words.jsonl', `${JSON.stringify(row)}\n`.repeat(8));
    const rowsOf = async (recipe: string) =>
      (await user.petrel('plan', recipe, '--json'))
        .json<{ checks: readonly { name: string; status: string; detail: string }[] }>()
        .checks.find(({ name }) => name === 'training rows');
    expect(await rowsOf('recipe.yaml')).toMatchObject({ status: 'ok' });
    const says = /the tokenizer has no tokens for 60 % of the characters .*"t".*: the model never sees them/;
    expect(await rowsOf('words.yaml')).toMatchObject({ status: 'warning', detail: expect.stringMatching(says) });
    const run = await user.petrel('run', 'words.yaml', '--name', 'words', '--wait');
    expect(run.err).toMatch(says);
  });
});
