import { afterAll, describe, expect, it } from 'vitest';
import { PetrelUser } from './petrel.ts';

describe('a first run', () => {
  const user = new PetrelUser();
  afterAll(() => user.remove());

  it('ends completed, and its ledger is verified', async () => {
    user.recipe();
    const run = await user.petrel('run', 'recipe.yaml', '--name', 'first', '--wait', '--json');
    expect(run.code, run.err).toBe(0);
    const verified = await user.petrel('ledger', 'verify', 'first', '--json');
    expect(verified.code, verified.out).toBe(0);
  });
});
