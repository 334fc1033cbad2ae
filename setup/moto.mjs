/**
 * moto, which answers the EC2 API, into PETREL_HOME/toolchain/moto-<id>: the pinned wheels of
 * tests/cloud/moto-requirements.txt, for the Python of this machine. Only tests need it (tests/cloud/moto.ts).
 */

import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { runPip } from './pip.mjs';
import { isExecutable, readTools, record } from './toolchain.mjs';

export function motoStep({ root, home }) {
  const list = join(root, 'tests/cloud/moto-requirements.txt');
  const id = createHash('sha256').update(readFileSync(list)).digest('hex').slice(0, 16);
  const folder = join(home, 'toolchain', `moto-${id}`);
  const path = join(folder, 'bin', 'moto_server');
  return {
    name: 'moto',
    needs: ['python'],
    pending: () => readTools(home).moto?.version !== id || !isExecutable(path),
    async run() {
      if (!existsSync(folder)) await install(list, folder);
      record(home, 'moto', { path, version: id });
      return '5.2.5';
    },
  };
}

/**
 * Installs packages into a folder aside, not into anyone's Python, and renames the folder into place. pip checks the
 * hashes.
 */
async function install(list, folder) {
  mkdirSync(join(folder, '../infra'), { recursive: true });
  const work = mkdtempSync(`${folder}-`);
  try {
    const flags = ['--quiet', '--no-deps', '--only-binary=:all:', '--require-hashes', '--no-compile'];
    await runPip(['install', ...flags, '-r', list, '--target', work], { what: 'pip install of moto' });
    renameSync(work, folder);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}
