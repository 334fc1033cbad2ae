/** Hostile model and dataset files: each is refused with a clear error. To process them would never end. */
import { readFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { PetrelUser, type Ran } from './petrel.ts';

describe('a run on hostile files is refused', () => {
  let user: PetrelUser;
  beforeEach(() => {
    user = new PetrelUser();
  });
  afterEach(() => user.remove());

  /** What `petrel run` printed, or the fact that it had not ended. */
  const refused = async (): Promise<Partial<Ran> & { readonly hung?: string }> =>
    user.petrel('run', 'recipe.yaml', '--json').catch((error: Error) => ({ hung: error.message }));

  it('when config.json has more layers than any model, by the name of the field', async () => {
    user.recipe();
    const config = JSON.parse(readFileSync(`${user.folder}/base/config.json`, 'utf8')) as object;
    user.write('base/config.json', { ...config, num_hidden_layers: 2147483648 });
    const ran = await refused();
    expect(ran).toMatchObject({ code: 2, out: expect.stringContaining('num_hidden_layers must be') });
  });

  it('when the chat template loops for years, by its line', async () => {
    user.recipe('recipe.yaml', { data: { prompt_key: 'chat' }, trainer: { total_training_steps: 1 } }, 8);
    const rows = user
      .read('train.jsonl')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { prompt: unknown });
    user.write(
      'train.jsonl',
      rows.map((row) => `${JSON.stringify({ ...row, chat: [{ role: 'user', content: '1+1=' }] })}\n`).join(''),
    );
    const range = 'range(100000)';
    user.write('base/tokenizer_config.json', {
      ...(JSON.parse(user.read('base/tokenizer_config.json')) as object),
      chat_template: `{% for a in ${range} %}{% for b in ${range} %}{% for c in ${range} %}{% endfor %}{% endfor %}{% endfor %}1+1=`,
    });
    const ran = await refused();
    expect(ran).toMatchObject({ code: 2, out: expect.stringMatching(/chat template, line 1: .*steps/) });
  });

  it('and one with long numbers in its rows is not slow', async () => {
    user.recipe();
    const rows = user.read('train.jsonl').trim().split('\n');
    // Such a number is not JSON, so it is refused. A pattern that tries a run of zeros from each of its positions would
    // need minutes to notice this.
    user.write('train.jsonl', [...rows, `{"prompt": 1.${'0'.repeat(400_000)}1x}`, ''].join('\n'));
    const ran = await refused();
    expect(ran).toMatchObject({ code: 2, out: expect.stringContaining('train.jsonl') });
  });
});
