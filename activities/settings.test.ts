import { expect, test } from 'vitest';
import { recipeSchema } from '../core/recipe/index.ts';
import type { RecipeInput } from '../core/recipe/index.ts';
import { promptsPerJob } from './settings.ts';

const recipe = (val_batch_size: number | null) =>
  recipeSchema.parse({
    model: { path: 'm' },
    data: { train_files: 'd', val_batch_size },
    rollout: { n: 4, max_num_seqs: 32, val_kwargs: { n: 2 } },
  } as RecipeInput);

test('a job fills the slots of a worker', () => {
  expect(promptsPerJob(recipe(null), 'train')).toBe(8);
  expect(promptsPerJob(recipe(null), 'validate')).toBe(16);
});

test('data.val_batch_size makes the jobs of a validation smaller, never larger than the slots', () => {
  expect(promptsPerJob(recipe(5), 'validate')).toBe(5);
  expect(promptsPerJob(recipe(1312), 'validate')).toBe(16);
  expect(promptsPerJob(recipe(5), 'train')).toBe(8);
});
