/**
 * `node setup/format-native.mjs [--check]`: formats the native sources as native/.clang-format says, or checks them.
 */
import { spawnSync } from 'node:child_process';
import { clangFormatIn } from './clang-format.mjs';
import { checkoutRoot, filesBelow, petrelHome } from './places.mjs';

const check = process.argv.includes('--check');
const files = filesBelow(checkoutRoot, ['native/src', 'native/reaper', 'native/guard'], (path) =>
  /\.(c|cpp|h)$/.test(path),
);
const { status, error } = spawnSync(
  clangFormatIn(petrelHome()),
  [...(check ? ['--dry-run', '--Werror'] : ['-i']), ...files],
  { cwd: checkoutRoot, stdio: 'inherit' },
);
if (error !== undefined) throw error;
console.log(
  `clang-format: ${files.length} files ${status === 0 ? 'in order' : 'checked; `npm run format` formats them'}`,
);
process.exitCode = status ?? 1;
