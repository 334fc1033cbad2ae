import { describe, expect, it } from 'vitest';
import { testsIn } from './choose.ts';
import { withRun } from './durations.ts';
import { runnerOptions } from './options.ts';
import { longestFirst, shareOf } from './schedule.ts';

describe('the words after npm test', () => {
  it('choose the quick files, or the long ones', () => {
    expect(runnerOptions([]).choice).toBe('quick');
    expect(runnerOptions(['--long', 'recovery'])).toEqual({ filters: ['recovery'], choice: 'long', record: false });
  });

  it('find long files, too, when they name some', () => {
    expect(runnerOptions(['infra/nats'])).toEqual({ filters: ['infra/nats'], choice: 'all', record: false });
  });

  it.each([
    ['--shard 0/2', /--shard expects i\/n/],
    ['--shard 3/2', /--shard expects i\/n/],
    ['--shard 2', /--shard expects i\/n/],
    ['--fast', /Unknown option '--fast'.*\nusage: npm test/s],
  ])('are refused when they are %s', (words, message) => {
    expect(() => runnerOptions(words.split(' '))).toThrow(message);
  });
});

describe('the tests of a file', () => {
  it.each([
    ['long', '// @module-tag long\nimport'],
    ['engines', '// @module-tag engines\nimport'],
    ['some', "it('a', { tags: ['long'] }, () => {})"],
    ['quick', "const text = '// @module-tag long';"],
  ])('are %s', (which, source) => expect(testsIn(source)).toBe(which));
});

describe('files', () => {
  const seconds: Record<string, number> = { a: 1, b: 9, c: 5, d: 4, e: 1 };
  const names = Object.keys(seconds);
  const of = (name: string) => seconds[name] ?? 0;

  it('begin with the longest, and equal ones keep their order', () => {
    expect(longestFirst(names, of)).toEqual(['b', 'c', 'd', 'a', 'e']);
  });

  it('are each on one of the machines, which have equally much to do', () => {
    const shares = [1, 2].map((index) => shareOf(names, of, index, 2));
    expect(shares).toEqual([
      ['b', 'a'],
      ['c', 'd', 'e'],
    ]);
  });
});

describe('the durations of a run', () => {
  it('replace older ones of the same files, and those of files that are gone leave', () => {
    const kept = { unit: { 'a.test.ts': 7, 'b.test.ts': 8, 'gone.test.ts': 9 } };
    const run = [
      { project: 'unit', path: 'b.test.ts', seconds: 2.6 },
      { project: 'tiles', path: 'a.test.ts', seconds: 3 },
      { project: 'unit', path: 'quick.test.ts', seconds: 0.4 },
    ];
    expect(withRun(kept, run, (path) => path !== 'gone.test.ts')).toEqual({
      tiles: { 'a.test.ts': 3 },
      unit: { 'a.test.ts': 7, 'b.test.ts': 3 },
    });
  });
});
