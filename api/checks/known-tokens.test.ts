import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { parseRecipe } from '../../core/recipe/index.ts';
import { packageRoot } from '../../infra/home.ts';
import { runChecks } from './checks.ts';
import { tokenizerCheck } from './model-check.ts';
import { RecipeInputs } from '../inputs/recipe-inputs.ts';
import { trainRowsCheck, validationRowsCheck } from './rows-check.ts';

const place = mkdtempSync(join(tmpdir(), 'petrel-known-tokens-'));
afterAll(() => rmSync(place, { recursive: true }));

/** The example's model, whose tokenizer got tokens that the embedding has no rows for. */
function modelWith(name: string, added: readonly string[], settings: object = {}): string {
  const folder = join(place, name);
  cpSync(join(packageRoot(), 'examples/01-arithmetic-grpo/base'), folder, { recursive: true });
  const read = (file: string) => JSON.parse(readFileSync(join(folder, file), 'utf8')) as Record<string, unknown>;
  const write = (file: string, value: object) => writeFileSync(join(folder, file), JSON.stringify(value));
  const tokenizer = read('tokenizer.json');
  const extra = added.map((content, i) => ({ id: 18 + i, content, special: true, normalized: false }));
  const flags = { single_word: false, lstrip: false, rstrip: false };
  write('tokenizer.json', {
    ...tokenizer,
    added_tokens: [...(tokenizer['added_tokens'] as object[]), ...extra.map((one) => ({ ...one, ...flags }))],
  });
  write('tokenizer_config.json', { ...read('tokenizer_config.json'), ...settings });
  return folder;
}

function rowsFile(name: string, prompts: readonly (string | object)[]): string {
  const file = join(place, name);
  const row = (prompt: string | object) => ({ data_source: 'x', prompt, reward_model: { ground_truth: '2' } });
  writeFileSync(file, prompts.map((prompt) => `${JSON.stringify(row(prompt))}\n`).join(''));
  return file;
}

const many = Array.from({ length: 700 }, () => '1+1=');

async function checks(model: string, train: string, others: { readonly val_files?: string } = {}) {
  const recipe = parseRecipe({
    model: { path: model },
    data: { train_files: train, ...others },
    reward: { scorer: 'last_integer' },
  });
  const ports = { env: {}, home: place, now: new Date(0), say: () => undefined };
  const inputs = new RecipeInputs(recipe, ports as unknown as ConstructorParameters<typeof RecipeInputs>[1]);
  return (await runChecks([tokenizerCheck, trainRowsCheck, validationRowsCheck], inputs)).checks;
}

describe('a token that the model has no embedding for', () => {
  it('is named with file and row, wherever it stands', async () => {
    const model = modelWith('extra', ['<extra>']);
    const train = rowsFile('late.jsonl', [...many, '1<extra>+1=']);
    expect(await checks(model, train)).toContainEqual(
      expect.objectContaining({
        name: 'training rows',
        status: 'failed',
        detail: expect.stringContaining(
          'late.jsonl, row 701: the model has embeddings for the tokens 0 to 17, found token 18 ("<extra>")',
        ),
        hint: expect.stringContaining('resize the model’s embedding'),
      }),
    );
  });

  it('is found in validation rows, too', async () => {
    const model = modelWith('validation', ['<extra>']);
    const found = await checks(model, rowsFile('a.jsonl', ['1+1=']), { val_files: rowsFile('v.jsonl', ['<extra>1=']) });
    expect(found).toContainEqual(
      expect.objectContaining({ name: 'validation rows', detail: expect.stringContaining('v.jsonl, row 1') }),
    );
  });

  it('is found where only the chat template writes it', async () => {
    const model = modelWith('chat', ['<user>'], {
      chat_template: '{% for m in messages %}<user>{{ m.content }}{% endfor %}',
    });
    const train = rowsFile('chat.jsonl', [[{ role: 'user', content: '1+1=' }]]);
    expect(await checks(model, train)).toContainEqual(
      expect.objectContaining({ status: 'failed', detail: expect.stringContaining('found token 18 ("<user>")') }),
    );
  });

  it('is a warning while no row has it, which names special tokens', async () => {
    const model = modelWith('pad', ['<filler>'], { pad_token: '<filler>' });
    expect(await checks(model, rowsFile('plain.jsonl', ['1+1=']))).toContainEqual(
      expect.objectContaining({
        name: 'tokenizer',
        status: 'warning',
        detail: expect.stringContaining(
          'the tokenizer has 19 tokens and the model embeddings for 18; without one: pad_token "<filler>"',
        ),
      }),
    );
  });

  it('is refused as the only end token, because no response could end', async () => {
    const model = modelWith('end', ['<end>'], { eos_token: '<end>' });
    const config = JSON.parse(readFileSync(join(model, 'config.json'), 'utf8')) as Record<string, unknown>;
    writeFileSync(join(model, 'config.json'), JSON.stringify({ ...config, eos_token_id: 18 }));
    expect(await checks(model, rowsFile('end.jsonl', ['1+1=']))).toContainEqual(
      expect.objectContaining({
        name: 'tokenizer',
        status: 'failed',
        detail: expect.stringContaining('no response could end'),
      }),
    );
  });

  it('is named as one of several end tokens', async () => {
    const id = 4000;
    const model = modelWith('several', []);
    const config = JSON.parse(readFileSync(join(model, 'config.json'), 'utf8')) as Record<string, unknown>;
    writeFileSync(join(model, 'config.json'), JSON.stringify({ ...config, eos_token_id: id }));
    expect(await checks(model, rowsFile('several.jsonl', ['1+1=']))).toContainEqual(
      expect.objectContaining({
        name: 'tokenizer',
        status: 'warning',
        detail: expect.stringContaining(`the end tokens ${id} never come: the model has the tokens 0 to 17`),
      }),
    );
  });
});
