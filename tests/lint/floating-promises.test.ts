/**
 * The typed lint rule reports every promise that is not awaited. Biome 2.6 missed promises of libraries and lists, so
 * oxlint is used.
 */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { packageRoot } from '../../infra/home.ts';

interface Diagnostic {
  readonly code: string;
  readonly labels: readonly { readonly span: { readonly line: number } }[];
}

const fixture = 'tests/lint/floating-promises.ts';

it('finds each floating promise of the fixture, and no other', async () => {
  const lines = readFileSync(join(packageRoot(), fixture), 'utf8').split('\n');
  const expected = lines.flatMap((line, index) => (line.endsWith('// floating') ? [index + 1] : []));
  expect(expected.length).toBeGreaterThanOrEqual(10);
  expect(await linesWithFloatingPromises()).toEqual(expected);
});

async function linesWithFloatingPromises(): Promise<number[]> {
  const words = ['--type-aware', '--format', 'json', fixture];
  const run = promisify(execFile)(join(packageRoot(), 'node_modules/.bin/oxlint'), words, { cwd: packageRoot() });
  const { stdout } = await run.catch((error: { readonly stdout: string }) => error); // exit code 1: errors were found
  const { diagnostics } = JSON.parse(stdout) as { readonly diagnostics: readonly Diagnostic[] };
  return diagnostics
    .filter(({ code }) => code.includes('no-floating-promises'))
    .map(({ labels }) => labels[0]?.span.line ?? -1)
    .sort((a, b) => a - b);
}
