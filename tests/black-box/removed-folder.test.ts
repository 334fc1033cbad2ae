/** The folder in which the stack was started may be removed: the stack works on, and so do other folders. */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { PetrelUser } from './petrel.ts';

const user = new PetrelUser();
afterAll(() => user.remove());

it('runs from another folder train, score and save after the first folder is gone', async () => {
  user.recipe('recipe.yaml');
  user.recipe('first/recipe.yaml');
  const first = join(user.folder, 'first');
  const up = await user.petrelWith({ cwd: first }, 'up');
  expect(up.code, up.err).toBe(0);
  rmSync(first, { recursive: true });
  const ran = await user.petrel('run', 'recipe.yaml', '--wait', '--json');
  expect(ran.code, ran.out + ran.err).toBe(0);
  expect(ran.json<{ state: string; checkpoint: unknown }>()).toMatchObject({ state: 'completed' });
});
