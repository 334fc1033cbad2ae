import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ownCommand, pasteable } from './own-command.ts';

let folder: string;
let script: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'petrel-own-'));
  mkdirSync(join(folder, 'bin'));
  script = join(folder, 'bin.mjs');
  writeFileSync(script, '');
  chmodSync(script, 0o755);
});
afterEach(() => rmSync(folder, { recursive: true }));

describe('what is typed to start petrel', () => {
  it('is petrel when that is on the PATH and is this one', () => {
    symlinkSync(script, join(folder, 'bin/petrel'));
    expect(ownCommand(script, { PATH: `/usr/bin:${join(folder, 'bin')}` }, '/')).toBe('petrel');
  });

  it('is node and the script when petrel is not on the PATH, or is another one', () => {
    expect(ownCommand(script, { PATH: '/usr/bin' }, folder)).toBe('node bin.mjs');
    expect(ownCommand(script, { PATH: '/usr/bin' }, join(folder, 'bin'))).toBe(`node ${script}`);
    writeFileSync(join(folder, 'bin/petrel'), '');
    expect(ownCommand(script, { PATH: join(folder, 'bin') }, folder)).toBe('node bin.mjs');
  });

  it('is npx petrel under npx, which puts its own folder on the PATH', () => {
    const own = join(folder, 'node_modules/.bin');
    mkdirSync(own, { recursive: true });
    symlinkSync(script, join(own, 'petrel'));
    expect(ownCommand(script, { PATH: own, npm_command: 'exec' }, folder)).toBe('npx petrel');
    expect(ownCommand(script, { PATH: '/usr/bin', npm_command: 'exec' }, folder)).toBe('node bin.mjs');
  });
});

it('changes commands, and no other mention of petrel', () => {
  const names = new Set(['run', 'ckpt']);
  expect(pasteable('next: petrel run x; petrel ckpt ls', 'npx petrel', names)).toBe(
    'next: npx petrel run x; npx petrel ckpt ls',
  );
  const other = 'petrel-store, ./petrel run, petrel needs Node, petrel: failed';
  expect(pasteable(other, 'npx petrel', names)).toBe(other);
});
