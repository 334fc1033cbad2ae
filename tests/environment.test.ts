/** docs/look-up/environment.md names every PETREL_ variable of the code, and no other. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { packageRoot } from '../infra/home.ts';

/** Macros of the C++ code and of its build are not variables. */
const variableIn = (path: string): RegExp =>
  /\.(?:cpp|h)$/.test(path) ? /getenv\("(PETREL_[A-Z0-9_]+)"/g : /\b(PETREL_[A-Z0-9_]+)\b/g;

it('is complete: each variable of the code is in a table, and each in a table is used', () => {
  const files = execFileSync('git', ['ls-files', '*.ts', '*.mjs', '*.cpp', '*.h', '*.py', 'package.json'], {
    cwd: packageRoot(),
    encoding: 'utf8',
  });
  const used = new Set<string>();
  for (const path of files.trim().split('\n')) {
    if (path === 'tests/environment.test.ts') continue;
    const text = readFileSync(join(packageRoot(), path), 'utf8');
    for (const [, name = ''] of text.matchAll(variableIn(path))) used.add(name);
  }
  const page = readFileSync(join(packageRoot(), 'docs/look-up/environment.md'), 'utf8');
  const rows = page.split('\n').filter((line) => line.startsWith('|'));
  const told = rows.flatMap((row) =>
    [...(row.split('|')[1] ?? '').matchAll(/PETREL_[A-Z0-9_]+/g)].map(([name]) => name),
  );
  expect(told.toSorted()).toEqual([...used].sort());
});
