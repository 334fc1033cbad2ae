import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { defaultStore, knownStores, rememberStore } from './places.ts';

let home: string;
beforeEach(() => (home = mkdtempSync(join(tmpdir(), 'petrel-places-'))));
afterEach(() => rmSync(home, { recursive: true, force: true }));

const url = (path: string) => pathToFileURL(path).href;

describe('the stores of a machine', () => {
  it('are only the default one until another was used', () => {
    expect(knownStores(home)).toEqual([{ url: url(defaultStore(home)), there: false }]);
  });

  it('are listed once each, and a missing one is marked as missing', () => {
    const other = join(home, 'elsewhere');
    mkdirSync(other);
    for (const path of [other, join(home, 'gone'), other, defaultStore(home)]) rememberStore(home, url(path));
    expect(knownStores(home).map(({ url: at, there }) => [at, there])).toEqual([
      [url(defaultStore(home)), false],
      [url(other), true],
      [url(join(home, 'gone')), false],
    ]);
  });

  it('are the default one when the list cannot be read', () => {
    writeFileSync(join(home, 'stores.json'), '{');
    rememberStore(home, 's3://bucket/runs');
    expect(knownStores(home).at(-1)).toEqual({ url: 's3://bucket/runs', there: true });
  });
});
