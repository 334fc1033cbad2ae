/** The lists of packages from which engines are installed. `npm run engines:lock` makes them of the pins beside. */
import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { engineDevices } from '../../infra/engines/gpus.ts';
import { engineEnvironments } from '../../core/engines.ts';
import { listPath } from './install.ts';

const all = engineEnvironments.flatMap((engine) => engineDevices.map((device) => ({ engine, device })));
const lists = all.filter(({ engine, device }) => existsSync(listPath(engine, device)));

const packageLine = /^([A-Za-z0-9][\w.-]*)==([\w.+!]+) \\$/;
const hashLine = /^ {4}--hash=sha256:[0-9a-f]{64}( \\)?$/;

/** Maps the packages of a list to their versions and numbers of hashes; `other`: lines that are none of both. */
function read(path: string) {
  const packages = new Map<string, { version: string; hashes: number }>();
  const other: string[] = [];
  let last = { version: '', hashes: 0 };
  for (const line of readFileSync(path, 'utf8').trimEnd().split('\n')) {
    const [, name, version = ''] = packageLine.exec(line) ?? [];
    if (name !== undefined)
      packages.set(name.toLowerCase().replaceAll(/[-_.]+/g, '-'), (last = { version, hashes: 0 }));
    else if (hashLine.test(line)) last.hashes += 1;
    else other.push(line);
  }
  return { packages, other };
}

/** The pins that a person writes: [name, version]. */
const pinsOf = (path: string) =>
  readFileSync(path.replace(/txt$/, 'in'), 'utf8')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => /^([\w-]+)==([\w.]+)$/.exec(line)?.slice(1) ?? ['?', line]);

it('are there for processors and for CUDA', () => {
  expect(lists.map(({ engine, device }) => `${engine} ${device}`)).toEqual(
    expect.arrayContaining(['torch cpu', 'torch cuda', 'vllm cpu', 'vllm cuda']),
  );
});

describe.each(lists)('the list of $engine for $device', ({ engine, device }) => {
  const { packages, other } = read(listPath(engine, device));

  it('has a version and a hash of every package, and nothing else', () => {
    expect(other.filter((line) => !/^# Made by npm run engines:lock|^--extra-index-url https:/.test(line))).toEqual([]);
    expect([...packages].filter(([, { hashes }]) => hashes === 0)).toEqual([]);
    expect(packages.size).toBeGreaterThan(40);
  });

  it('has the versions that are pinned beside it', () => {
    const pins = pinsOf(listPath(engine, device));
    expect(pins.length).toBeGreaterThan(1);
    for (const [name = '', version] of pins)
      expect(packages.get(name)?.version.replace(/\+.*/, ''), name).toBe(version);
  });
});

it.each(engineEnvironments)('the pins of %s are the same versions on every device', (engine) => {
  const versions = new Map<string, Set<string>>();
  for (const device of engineDevices)
    for (const [name = '', version = ''] of pinsOf(listPath(engine, device))) {
      const of = name.replace(/-cpu$/, '');
      versions.set(of, (versions.get(of) ?? new Set()).add(version));
    }
  expect([...versions.keys()]).toEqual(expect.arrayContaining([engine, 'peft']));
  expect([...versions].filter(([, all]) => all.size > 1)).toEqual([]);
});
