import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { finish, PetrelUser, root } from './petrel.ts';

const user = PetrelUser.onLentStack();
afterAll(() => user.remove());

it('a program starts a run, follows it, verifies its ledger and exports the policy', async () => {
  const out = join(user.folder, 'trained');
  const program = spawn(process.execPath, [join(root, 'examples/05-from-a-program/train.mjs'), '2', out], {
    cwd: user.folder,
    env: user.env(),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const ran = await finish(program, 'train.mjs');
  expect(ran.code, ran.err).toBe(0);
  expect(ran.out).toMatch(/is completed\nreward [\d.]+ -> [\d.]+\nthe policy after iteration 2/);
  expect(existsSync(join(out, 'model.safetensors'))).toBe(true);
});
