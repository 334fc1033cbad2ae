/** The program that runs scorers and ends all they start: native/reaper/ → build/native/petrel-reaper. */

import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { checkoutStamp, contentHash } from './places.mjs';
import { cxxCompiler } from './platform.mjs';
import { runProgram } from './programs.mjs';
import { SetupError } from './report.mjs';

const source = 'native/reaper/reaper.c';
const flags = ['-x', 'c', '-std=c11', '-O2', '-Wall', '-Wextra', '-Werror'];

export function reaperStep({ root, force }) {
  const stamp = checkoutStamp(root, 'reaper');
  const program = join(root, 'build/native/petrel-reaper');
  const key = () => contentHash(root, [source], cxxCompiler() ?? '', ...flags);
  let forced = force;
  return {
    name: 'reaper',
    needs: ['compiler'],
    pending: () => existsSync(join(root, source)) && (forced || !existsSync(program) || !stamp.holds(key())),
    async run() {
      mkdirSync(join(root, 'build/native'), { recursive: true });
      // Static, the program runs on systems with an older C library too: it is part of the package. Not every system has
      // the static library.
      const build = (...more) =>
        runProgram(cxxCompiler(), [...flags, ...more, '-o', program, join(root, source)], {
          what: `the build of ${source}`,
          hint: 'the compiler output above says where; `npm run build` tries again',
        });
      await build('-static').catch((error) => {
        if (error instanceof SetupError) return build();
        throw error;
      });
      stamp.write(key());
      forced = false;
    },
  };
}
