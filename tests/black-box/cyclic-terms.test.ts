import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { PetrelUser } from './petrel.ts';

const user = new PetrelUser();
afterAll(() => user.remove());

it('a run whose term is its own parent is reported as damaged, and the command ends', async () => {
  user.recipe();
  const run = await user.petrel('run', 'recipe.yaml', '--name', 'cyclic', '--wait', '--json');
  expect(run.code, run.err).toBe(0);
  await user.petrel('down');
  const [{ runId }] = (await user.petrel('ls', '--json')).json<[{ readonly runId: string }]>();
  const file = join(user.home, 'store/runs', runId, 'terms/1/term.json');
  const { check: _check, ...term } = JSON.parse(readFileSync(file, 'utf8'));
  writeFileSync(file, JSON.stringify({ ...term, parent: { term: 1, position: 1, record: 'a'.repeat(64) } }));
  const status = await user.petrel('status', runId);
  expect(status.out + status.err).toContain('expected an earlier term as its parent, found term 1');
});
