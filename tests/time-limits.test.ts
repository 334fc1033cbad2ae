/**
 * No test depends on time. A machine that is busy with other work may take ten times as long, so a test waits for an
 * event, counts steps, or compares two measurements of its own (tests/processor-time.ts). Waits have one guard
 * (tests/patience.ts), and tests another (vitest.config.ts): both only end what would never end.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { packageRoot } from '../infra/home.ts';
import { sourcesIn } from './architecture/sources.ts';

const root = packageRoot();
const folders = [
  ...[
    'activities',
    'api',
    'bench',
    'cli',
    'core',
    'infra',
    'log',
    'models',
    'native',
    'rewards',
    'tests',
    'workers',
    'workflows',
  ],
];
/** Programs that measure, and are no tests. */
const programs = /^tests\/(soak|spot|kept-stores)\/|\/(main|machine-play|takeover|weights-transfer)\.ts$/;
const files = folders
  .flatMap((folder) => sourcesIn(root, folder))
  .filter(({ path }) => /\.test(-support)?\.ts$/.test(path) || path.startsWith('tests/'))
  .filter(({ path }) => !programs.test(path) && path !== 'tests/time-limits.test.ts');

const clock = String.raw`(?:performance\.now\(\)|Date\.now\(\)|process\.(?:cpuUsage|hrtime)|processorMs\([^)]*\)) ?[-)]`;
const limits: readonly (readonly [string, RegExp])[] = [
  [
    'an upper bound of a measured time',
    new RegExp(
      String.raw`expect\((?:[^;]*?)${clock}[^;]*\)\s*\.toBeLess(?:Than|ThanOrEqual)\(\s*[\d_.]+\s*,?\s*\)`,
      'g',
    ),
  ],
  [
    'an upper bound of a time',
    /expect\(\w*(?:[sS]econds|Ms|took|elapsed|spent)(?:, [^;]*)?\)\s*\.toBeLess\w+\(\s*[\d_]+\s*\)/g,
  ],
  ['a limit of one test', /^[^\n]*\b(?:it|test|describe)\b[^\n]*\{ timeout: [^}]+\}/gm],
  ['a limit of one test', /^ *\}, (?:[\d_]{4,}|(?!patienceMs)\w+Ms)\);$/gm],
  ['a limit of one hook', /\b(?:before|after)(?:All|Each)\([^\n]*, [\d_]{4,}\);/g],
  ['a wait with a limit of its own', /\beveryMs: \d+, timeoutMs: [\d_]+/g],
  ['a wait with a limit of its own', /\.poll\([^\n]*\{ timeout: [\d_]+|vi\.waitFor\(/g],
  ['a wait with a limit of its own', /\.(?:stands|fired)\([^\n]*AbortSignal\.timeout\([\d_]+\)/g],
];

const found = (path: string, text: string): string[] =>
  limits.flatMap(([what, pattern]) =>
    [...text.matchAll(pattern)].map(({ 0: match, index }) => {
      const line = text.slice(0, index).split('\n').length;
      return `${path}:${line}: ${what}: ${match.trim().slice(0, 90)}`;
    }),
  );

it('no test has an upper bound of time, or a limit of its own', () => {
  const allowed = [
    // A command that need not end: the disk is full for as long as it is looked at.
    /full-disk\.test\.ts:\d+: a wait/,
    // It runs for as long as it is asked to.
    /readers-fuzz\.test\.ts/,
  ];
  const all = files.flatMap(({ path }) => found(path, readFileSync(join(root, path), 'utf8')));
  expect(all.filter((one) => !allowed.some((pattern) => pattern.test(one)))).toEqual([]);
});

it.each([
  ['  expect(performance.now() - began).toBeLessThan(2_500);', 'an upper bound of a measured time'],
  ['  expect(Math.abs(Date.parse(at) - Date.now())).toBeLessThan(60_000);', 'an upper bound of a measured time'],
  ['  expect(seconds, "until the first job").toBeLessThan(15);', 'an upper bound of a time'],
  ["test('agrees', { timeout: 60_000 }, async () => {", 'a limit of one test'],
  ['}, 240_000);', 'a limit of one test'],
  ['afterAll(() => user.remove(), 120_000);', 'a limit of one hook'],
  ['const bounded = { everyMs: 20, timeoutMs: 60_000 };', 'a wait with a limit of its own'],
  ['await expect.poll(state, { timeout: 90_000 }).toBe(1);', 'a wait with a limit of its own'],
  ['await injector.stands(id, AbortSignal.timeout(60_000));', 'a wait with a limit of its own'],
])('such a line is found: %s', (line, what) => {
  expect(found('some.test.ts', `\n${line}\n`)).toEqual([expect.stringContaining(`some.test.ts:2: ${what}`)]);
});
