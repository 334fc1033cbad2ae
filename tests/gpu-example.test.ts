/** Example 08, which nothing here can run: each of its recipes can be planned, and names the engines of its page. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { parseMachine } from '../api/memory/cards.ts';
import { machineUse, tooLittle } from '../api/memory/devices.ts';
import { loadRecipe } from '../api/recipes/recipe-file.ts';
import { runIssues } from '../core/recipe/index.ts';
import { packageRoot } from '../infra/home.ts';
import { publishedModels } from '../models/published-configs.test-support.ts';

const folder = join(packageRoot(), 'examples/08-qwen-gpu');
const recipes = readdirSync(folder).filter((name) => name.endsWith('.yaml'));
const page = readFileSync(join(folder, 'README.md'), 'utf8');
const model = mkdtempSync(join(tmpdir(), 'petrel-gpu-example-'));
afterAll(() => rmSync(model, { recursive: true }));

it.each(recipes)('%s can be run, with torch and vLLM, and stands in the table with its GPUs', (name) => {
  const { recipe } = loadRecipe(join(folder, name), [], packageRoot());
  expect(runIssues(recipe)).toEqual([]);
  expect([recipe.trainer.engine, recipe.rollout.name]).toEqual(['torch', 'vllm']);
  const row = `| [${name}](${name}) | ${recipe.model.path.replace('Qwen/', '')} | ${recipe.trainer.fsdp_size} of `;
  expect(page).toContain(row);
});

it.each(recipes)('%s fits the GPUs of the table', async (name) => {
  const { recipe } = loadRecipe(join(folder, name), [], packageRoot());
  const sizes = publishedModels[/Qwen2\.5-[\d.]+B/.exec(recipe.model.path)?.[0] ?? ''];
  writeFileSync(join(model, 'config.json'), JSON.stringify(sizes?.config));
  const [, cards, gigabytes] = new RegExp(`\\(${name}\\) \\| \\S+ \\| (\\d) of (\\d+) GB`).exec(page) ?? [];
  const use = await machineUse(
    recipe,
    { model: { folder: model, head: 'tokens' } },
    parseMachine(`${cards}x${gigabytes}GB`),
  );
  expect(use && [use.fits, tooLittle(use, recipe)]).toEqual([true, undefined]);
});

it('the recipes are three', () => {
  expect(recipes).toHaveLength(3);
});
