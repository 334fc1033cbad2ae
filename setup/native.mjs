/** The C++ engine: native/ → build/native/petrel.node, by cmake. */

import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { checkoutStamp, contentHash, filesBelow, sha256, writeAtomically } from './places.mjs';
import { absentCxx, buildNative, compilerIdentity, configuration, cxxCompiler, generator } from './compiler.mjs';
import { SetupError } from './report.mjs';

const sources = /(\.(c|cc|cpp|h|hpp|inc|cmake|map)|CMakeLists\.txt)$/;
const hint = 'the compiler output above says where; `npm run build` tries again';

export function nativeStep({ root, force, cores }) {
  const stamp = checkoutStamp(root, 'native');
  const addon = join(root, 'build/native/petrel.node');
  const folder = join(root, 'build/native');
  const key = () => nativeHash(root, ...configuration(root, folder));
  let forced = force;
  return {
    name: 'native engine',
    needs: ['compiler', 'cmake'],
    pending: () =>
      existsSync(join(root, 'native/CMakeLists.txt')) &&
      (forced || !existsSync(`${addon}.sha256`) || !stamp.holds(key())),
    async run() {
      const built = key();
      forgetOtherConfiguration(root);
      await buildNative({ root, folder, cores, hint });
      if (!existsSync(addon))
        throw new SetupError(
          'the build of native/ made no build/native/petrel.node',
          'its CMakeLists.txt names the output',
        );
      // What an installed package checks before it uses this file: setup/installed.mjs.
      writeAtomically(`${addon}.sha256`, sha256(addon));
      stamp.write(built);
      forced = false;
      const absent = absentCxx();
      return absent === undefined ? undefined : `by ${cxxCompiler()}: CXX=${absent} is not there`;
    },
  };
}

/** Key of the engine build: its sources, how it is configured, and the Node-API headers it is compiled against. */
export function nativeHash(root, ...configuration) {
  const headers = ['node_modules/node-addon-api/package.json', 'node_modules/node-api-headers/package.json'];
  const files = [
    ...filesBelow(root, ['native'], (path) => sources.test(path) && !/^native\/(reaper|guard)\//.test(path)),
    ...headers.filter((file) => existsSync(join(root, file))),
  ];
  return contentHash(root, files, ...configuration);
}

/**
 * cmake refuses a build folder that was configured elsewhere or for another generator, and keeps its first compiler.
 */
function forgetOtherConfiguration(root) {
  const folder = join(root, 'build/native');
  const cache = join(folder, 'CMakeCache.txt');
  if (!existsSync(cache)) return;
  const text = readFileSync(cache, 'utf8');
  const same =
    text.includes(`CMAKE_HOME_DIRECTORY:INTERNAL=${join(root, 'native')}\n`) &&
    text.includes(`CMAKE_GENERATOR:INTERNAL=${generator()}\n`) &&
    text.includes(`PETREL_COMPILER:UNINITIALIZED=${compilerIdentity()}\n`);
  if (!same) rmSync(folder, { recursive: true });
}
