/** A run continues with another build of the engine that computes the same bits. */
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { KeptStore } from './kept-store.ts';
import { PetrelUser, root } from './petrel.ts';

/** The engine under test with another build hash, as it would be after its sources were reformatted. */
function anotherBuild(folder: string): string {
  const built = join(root, 'build/native');
  const hash = /"([0-9a-f]{16})"/.exec(readFileSync(join(built, 'build_hash.h'), 'utf8'))?.[1];
  if (hash === undefined) throw new Error(`${built}/build_hash.h names no build`);
  const addon = readFileSync(join(built, 'petrel.node'));
  const at = addon.indexOf(hash);
  expect(at, `the hash ${hash} in petrel.node`).toBeGreaterThan(0);
  addon.write('0123456789abcdef', at);
  mkdirSync(folder);
  // Older engines need a library beside them.
  const library = join(built, 'libdnnl.so.3');
  if (existsSync(library)) symlinkSync(library, join(folder, 'libdnnl.so.3'));
  const file = join(folder, 'petrel.node');
  writeFileSync(file, addon);
  return file;
}

describe('an engine that was built from reformatted sources', () => {
  const user = new PetrelUser();
  afterAll(() => user.remove());

  it('continues a deterministic run of the previous build to the same weights', async () => {
    const store = new KeptStore(user, '5ad3543', 'another-stack');
    const env = { PETREL_NATIVE: anotherBuild(join(user.home, 'another-build')) };
    const resumed = await user.petrelWith({ env }, 'resume', 'grpo-stopped', '--wait');
    expect(resumed.err).not.toContain('numeric profile');
    expect(resumed.code, resumed.err).toBe(0);
    expect(store.states('grpo-stopped')).toEqual(store.states('grpo-completed'));
  });
});
