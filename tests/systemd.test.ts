/** The units of systemd, which nothing here can start: systemd's own check, and that their commands exist. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { COMMANDS } from '../cli/commands.ts';
import { packageRoot } from '../infra/home.ts';

const folder = join(packageRoot(), 'setup/systemd');
const units = readdirSync(folder);
const copies = mkdtempSync(join(tmpdir(), 'petrel-units-'));
afterAll(() => rmSync(copies, { recursive: true }));
const isThere = spawnSync('systemd-analyze', ['--version']).error === undefined;

it('are there for a control machine and for a worker', () => {
  expect(units.toSorted()).toEqual(['petrel-worker.service', 'petrel.service']);
});

describe.each(units)('%s', (unit) => {
  const text = readFileSync(join(folder, unit), 'utf8');

  it.skipIf(!isThere)('is what systemd expects', () => {
    // It also looks for the program, which a user installs.
    const copy = join(copies, unit);
    writeFileSync(copy, text.replaceAll('/usr/local/bin/petrel', process.execPath));
    const { stderr } = spawnSync('systemd-analyze', ['verify', '--man=no', copy], { encoding: 'utf8' });
    expect(stderr.split('\n').filter((line) => line.includes(unit))).toEqual([]);
  });

  it('runs commands that petrel has', () => {
    const words = [...text.matchAll(/^Exec\w+=\/usr\/local\/bin\/petrel (\w+)/gm)].map(([, word]) => word);
    expect(words.length).toBeGreaterThan(0);
    for (const word of words) expect(COMMANDS.map(({ name }) => name)).toContain(word);
  });
});
