/** Limits of a shell, in its own words. */
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, it } from 'vitest';
import { packageRoot } from './home.ts';
import type { SmallLimit } from './limits.ts';

const file = join(packageRoot(), 'setup/limits.mjs');

interface Limits {
  smallLimits(limits: Map<string, number>, tasks: number): SmallLimit[];
  ownLimits(text: string): Map<string, number>;
}

it('finds none too small where nothing is limited', async () => {
  const { smallLimits: look } = (await import(pathToFileURL(file).href)) as Limits;
  expect(look(new Map([['Max processes', Infinity]]), 100)).toEqual([]);
});

it.each([
  ['ulimit -v 8000000', 'ulimit -v is 8000000 KiB', 'ulimit -v unlimited'],
  ['ulimit -n 64', 'ulimit -n is 64, a stack needs 256', 'ulimit -n 4096'],
])('names %s, and what to type', (limit, detail, fix) => {
  const program = `import(${JSON.stringify(pathToFileURL(file).href)}).then((m) => console.log(JSON.stringify(m.smallLimits())))`;
  const out = execFileSync('bash', ['-c', `${limit}; exec ${process.execPath} -e '${program}'`], { encoding: 'utf8' });
  expect(JSON.parse(out)).toEqual([
    expect.objectContaining({ detail: expect.stringContaining(detail) as string, fix }),
  ]);
});

it('counts the processes that a user has already', async () => {
  const { smallLimits: look, ownLimits } = (await import(pathToFileURL(file).href)) as Limits;
  const limits = ownLimits(
    'Limit  Soft  Hard  Units\nMax processes             1000                 2000    processes\n',
  );
  expect(look(limits, 700)).toEqual([]);
  expect(look(limits, 800)).toMatchObject([{ name: 'processes', fix: 'ulimit -u unlimited' }]);
});
