/**
 * clang-format, which only `npm run lint` and `npm run format` need, into PETREL_HOME/toolchain: a wheel pinned by
 * SHA-256.
 */

import { chmodSync, existsSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { fetchWheels } from './wheels.mjs';

const version = '19.1.7';
const sha256 = 'f4906fb463dd2033032978f56962caab268c9428a384126b9400543eb667f11c';

const folderIn = (home) => join(home, 'toolchain', `clang-format-${version}`);
export const clangFormatIn = (home) => join(folderIn(home), 'clang-format');

export function clangFormatStep({ home }) {
  const folder = folderIn(home);
  return {
    name: 'clang-format',
    needs: ['python'],
    pending: () => !existsSync(join(folder, '.complete')),
    async run() {
      await fetchWheels([[`clang-format==${version}`, sha256]], folder, (unpacked, result) => {
        renameSync(join(unpacked, 'clang_format/data/bin/clang-format'), join(result, 'clang-format'));
        chmodSync(join(result, 'clang-format'), 0o755);
      });
      return version;
    },
  };
}
