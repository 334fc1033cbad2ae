// @module-tag long
/** `npm run algorithms` on a real stack, with one recipe. */
import { spawnSync } from 'node:child_process';
import { expect, it } from 'vitest';
import { builtFile } from '../infra/home.ts';

const algorithms = (...words: string[]) =>
  spawnSync(process.execPath, [builtFile('bench/algorithms/main.js'), ...words], { encoding: 'utf8' });

it('runs a recipe, checks it and ends with the counts', () => {
  const { stdout, stderr, status } = algorithms('grpo', '--seeds', '1', '--seconds', '0');
  expect(status, stdout + stderr).toBe(0);
  expect(stdout).toMatch(/^grpo +1 +0\.3\d{2} -> 0\.\d{3} ± 0\.\d{3} +15 +[\d.]+ +passed$/m);
  expect(stdout.trim().split('\n').at(-1)).toBe('1 passed, 0 failed');
});

it('fails a run that takes too long, and prints JSON', () => {
  const { stdout, status } = algorithms('grpo', '--seeds', '1', '--seconds', '0.1', '--json');
  expect(status).toBe(1);
  const [result, counts] = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  expect(result).toMatchObject({ recipe: 'grpo', seed: 1, passed: false, iterations: 15 });
  expect(result?.['errors']).toMatchObject([expect.stringMatching(/^it took [\d.]+ s, more than 0\.1 s/)]);
  expect(counts).toEqual({ passed: 0, failed: 1 });
});

it('refuses a recipe that is not there', () => {
  const { stderr, status } = algorithms('nothing');
  expect(status).toBe(2);
  expect(stderr).toContain('there is no recipe nothing');
});
