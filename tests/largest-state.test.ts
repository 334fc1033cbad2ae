// @module-tag long
/** A state of several gigabytes takes no more memory of this process than a small one: check-largest-state.ts. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { builtFile } from '../infra/home.ts';

it('saves, verifies, loads, publishes and exports 3.6 GB within 1 GiB', async () => {
  const { stdout } = await promisify(execFile)(process.execPath, [
    builtFile('tests/check-largest-state.js'),
    '--elements',
    '3e8',
  ]);
  expect(stdout).toMatch(/the model is exported; peak \d+ MiB\n$/);
});
