import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { InvalidInputError } from '../../core/errors.ts';
import { readServers } from '../../infra/stack/servers.ts';
import { importRecipe } from './import/import-recipe.ts';
import { loadRecipe } from './recipe-file.ts';

const folder = mkdtempSync(join(tmpdir(), 'petrel-yaml-'));
afterAll(() => rmSync(folder, { recursive: true }));

const nine = (name: string) => `[${Array.from({ length: 9 }, () => name).join(', ')}]`;
const exploding = ['a0: &a0 [x]', ...[1, 2, 3, 4].map((i) => `a${i}: &a${i} ${nine(`*a${i - 1}`)}`)].join('\n');

describe('every reader of YAML refuses aliases that multiply', () => {
  const file = (name: string, text = exploding) => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  };
  it.each([
    ['a recipe', () => loadRecipe(file('recipe.yaml'), [], folder)],
    ['a recipe that another one extends', () => loadRecipe(file('b.yaml', `extends: ${file('a.yaml')}`), [], folder)],
    ['a configuration of verl', () => importRecipe(file('verl.yaml'), { env: new Map(), words: [] }, folder)],
    ['stack.yaml', () => readServers(folder, { PETREL_STACK_CONFIG: file('stack.yaml') })],
  ])('%s', (_, read) => {
    expect(read).toThrow(InvalidInputError);
    expect(read).toThrow(/its aliases multiply/);
  });
});
