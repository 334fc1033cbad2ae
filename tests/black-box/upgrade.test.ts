// @module-tag long
/** A newer build of petrel takes over a home whose stack an older build runs. */
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { finish, PetrelUser, root } from './petrel.ts';

const user = new PetrelUser();
const older = mkdtempSync(join(tmpdir(), 'petrel-older-'));
const stackBuild = () =>
  (JSON.parse(readFileSync(join(user.home, 'stack/stack.json'), 'utf8')) as { build: string }).build;
const build = readFileSync(join(root, 'dist/build-id'), 'utf8');

beforeAll(() => {
  for (const path of ['package.json', 'tsconfig.json', 'cli/bin.mjs', 'setup', 'dist', 'build'])
    cpSync(join(root, path), join(older, path), { recursive: true });
  symlinkSync(join(root, 'node_modules'), join(older, 'node_modules'));
  writeFileSync(join(older, 'dist/build-id'), 'an-older-build');
});
afterAll(async () => {
  await user.remove();
  rmSync(older, { recursive: true, force: true });
});

/** The same command of the older build. */
const olderPetrel = (...words: readonly string[]) =>
  finish(user.start(words, { stdio: ['ignore', 'pipe', 'pipe'] }, join(older, 'cli/bin.mjs')), `older ${words[0]}`);

it('its up replaces the processes of the older build, however often these start their own supervisor again', async () => {
  for (let time = 1; time <= 5; time++) {
    const before = await olderPetrel('up', '--json');
    expect(before.code, before.err).toBe(0);
    const after = await user.petrel('up', '--json');
    expect(after.code, after.err).toBe(0);
    expect(stackBuild(), `after takeover ${time}`).toBe(build);
  }
});

it('its run and fork are never begun by the processes of the older build', async () => {
  user.recipe('two.yaml', { trainer: { total_training_steps: 2 } });
  for (const words of [
    ['run', 'two.yaml', '--name', 'two'],
    ['fork', 'two', '--from', '1'],
  ]) {
    const before = await olderPetrel('up', '--json');
    expect(before.code, before.err).toBe(0);
    const ran = await user.petrel(...words, '--wait');
    expect(ran.code, ran.err).toBe(0);
    const lines = ran.err.split('\n');
    const replaced = lines.findIndex((line) => line.startsWith('control'));
    const written = lines.findIndex((line) => /^run two-|^two-\S+ begins/.test(line));
    expect(replaced, ran.err).toBeGreaterThanOrEqual(0);
    expect(replaced, ran.err).toBeLessThan(written);
  }
});
