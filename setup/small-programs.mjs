/** Small C programs, which scorers run under: native/<name>/<name>.c with its headers → build/native/petrel-<name>. */

import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { buildEnvironment, compilerIdentity, cxxCompiler, warningsAreErrors } from './compiler.mjs';
import { checkoutStamp, contentHash, filesBelow } from './places.mjs';
import { runProgram } from './programs.mjs';
import { SetupError } from './report.mjs';

const flags = () => ['-x', 'c', '-std=c11', '-O2', '-Wall', '-Wextra', ...(warningsAreErrors() ? ['-Werror'] : [])];

/** Runs a scorer, and ends all that it has started. */
export const reaperStep = (context) => smallProgramStep('reaper', context);

/** Process 1 of a sandbox. */
export const guardStep = (context) => smallProgramStep('guard', context);

const isSource = (path) => /\.[ch]$/.test(path);

function smallProgramStep(name, { root, force }) {
  const source = `native/${name}/${name}.c`;
  const stamp = checkoutStamp(root, name);
  const program = join(root, `build/native/petrel-${name}`);
  const sources = () => filesBelow(root, [`native/${name}`], isSource);
  const key = () => contentHash(root, sources(), compilerIdentity(), ...flags());
  let forced = force;
  return {
    name,
    needs: ['compiler'],
    pending: () => existsSync(join(root, source)) && (forced || !existsSync(program) || !stamp.holds(key())),
    async run() {
      mkdirSync(join(root, 'build/native'), { recursive: true });
      // Static, the program runs on systems with an older C library too: it is part of the package. Not every system
      // has the static library.
      const build = (...more) =>
        runProgram(cxxCompiler(), [...flags(), ...more, '-o', program, join(root, source)], {
          env: buildEnvironment(),
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
