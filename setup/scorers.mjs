/**
 * The packages of the scorers in Python, into PETREL_HOME/toolchain/scorers-<id>: the pinned wheels of
 * rewards/python/requirements.txt, which are pure Python. rewards/python-scorers.ts finds the folder.
 */

import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { fetchWheels } from './wheels.mjs';

export function scorersStep({ root, home }) {
  const list = readFileSync(join(root, 'rewards/python/requirements.txt'), 'utf8');
  const id = createHash('sha256').update(list).digest('hex').slice(0, 16);
  const folder = join(home, 'toolchain', `scorers-${id}`);
  return {
    name: 'packages of scorers',
    needs: ['python'],
    pending: () => !existsSync(join(folder, '.complete')),
    async run() {
      const wheels = wheelsOf(list);
      await fetchWheels(wheels, folder, (unpacked, result) => {
        for (const name of readdirSync(unpacked)) renameSync(join(unpacked, name), join(result, name));
      });
      return `${wheels.length} packages`;
    },
  };
}

/** Lines `name==version --hash=sha256:…`, without comments. */
function wheelsOf(list) {
  return [...list.matchAll(/^(\S+==\S+) --hash=sha256:([0-9a-f]{64})$/gm)].map(([, name, sha256]) => [name, sha256]);
}
