/** A user id without an entry in passwd, as in containers. */
import {
  chownSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { finish, PetrelUser, root } from './petrel.ts';

const uid = 54_321;
const user = new PetrelUser();
/** A home for a user who may not be able to read the machine's own one, so the servers are copied. */
const home = realpathSync(mkdtempSync(join(tmpdir(), 'petrel-unknown-')));

const petrel = (...words: string[]) => {
  const { HOME: _home, USER: _user, LOGNAME: _logname, ...env } = user.env({ PETREL_HOME: home });
  const options = { env, cwd: home, uid, gid: uid, stdio: ['ignore', 'pipe', 'pipe'] as ['ignore', 'pipe', 'pipe'] };
  return finish(user.start(words, options), `petrel ${words.join(' ')}`);
};

afterAll(async () => {
  if (canTry) await petrel('down');
  rmSync(home, { recursive: true, force: true, maxRetries: 3 });
  await user.remove();
});

/** Folders that `mktemp -d` makes are closed to other users. */
const isOpen = (folder: string): boolean =>
  (statSync(folder).mode & 0o005) === 0o005 && (folder === '/' || isOpen(dirname(folder)));
const canTry = process.getuid?.() === 0 && isOpen(root);

it.skipIf(!canTry)('may start a stack (only root can try this, in a checkout that other users can read)', async () => {
  copyServers();
  const up = await petrel('up');
  expect(up.code, `up failed: ${(up.out + up.err).slice(-500)}`).toBe(0);
});

function copyServers(): void {
  const toolchain = join(home, 'toolchain');
  mkdirSync(toolchain);
  const tools = JSON.parse(readFileSync(join(user.home, 'toolchain/tools.json'), 'utf8'));
  for (const tool of Object.values<{ path: string }>(tools)) {
    const copy = join(toolchain, basename(tool.path));
    copyFileSync(tool.path, copy);
    tool.path = copy;
  }
  writeFileSync(join(toolchain, 'tools.json'), JSON.stringify(tools));
  for (const path of [home, toolchain]) chownSync(path, uid, uid);
}
