/** Example 08, which nothing here can run: each of its recipes can be planned, and names the engines of its page. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { loadRecipe } from '../api/recipes/recipe-file.ts';
import { runIssues } from '../core/recipe/index.ts';
import { packageRoot } from '../infra/home.ts';

const folder = join(packageRoot(), 'examples/08-qwen-gpu');
const recipes = readdirSync(folder).filter((name) => name.endsWith('.yaml'));

it.each(recipes)('%s can be run, with torch and vLLM, and stands in the table with its GPUs', (name) => {
  const { recipe } = loadRecipe(join(folder, name), [], packageRoot());
  expect(runIssues(recipe)).toEqual([]);
  expect([recipe.trainer.engine, recipe.rollout.name]).toEqual(['torch', 'vllm']);
  const model = recipe.model.path.replace('Qwen/', '');
  const row = `| [${name}](${name}) | ${model} | ${recipe.trainer.fsdp_size}`;
  expect(readFileSync(join(folder, 'README.md'), 'utf8')).toContain(row);
});

it('the recipes are three', () => {
  expect(recipes).toHaveLength(3);
});
