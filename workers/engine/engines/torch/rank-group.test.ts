/** Ranks whose program does not start, or ends before it is ready. Tests with torch are in tests/engines. */
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { RankGroup } from './rank-group.ts';

const folder = mkdtempSync(join(tmpdir(), 'petrel-no-ranks-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** A program that prints a line and ends. */
function failing(): string {
  const path = join(folder, 'python');
  writeFileSync(path, '#!/bin/sh\necho "no module named torch" >&2\nexit 3\n', { mode: 0o755 });
  return path;
}

describe('a group of ranks', () => {
  it.each([
    ['is missing', '/no/such/python', /rank \d ended \(spawn \/no\/such\/python ENOENT\)/],
    ['fails', failing(), /rank \d ended \(exit code 3\); its last line: no module named torch/],
  ])('says why it did not start when its Python %s, and leaves nothing', async (_, python, message) => {
    const left = () => readdirSync(tmpdir()).filter((name) => name.startsWith('petrel-ranks-'));
    const before = left();
    const options = { engine: 'torch', python, device: 'cpu', ranks: 2, threads: 1, deterministic: false } as const;
    await expect(RankGroup.start(options)).rejects.toMatchObject({
      code: 'EngineExited',
      message: expect.stringMatching(message),
    });
    expect(left().filter((name) => !before.includes(name))).toEqual([]);
  });
});
