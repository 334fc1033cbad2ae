/** The engine of an installed package: PETREL_HOME/engine/<id>/petrel.node. */

import { spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { buildNative, cxxCompiler } from './compiler.mjs';
import { sha256 } from './places.mjs';
import { findOnPath } from './programs.mjs';
import { SetupError } from './report.mjs';

const addonName = 'petrel.node';

/**
 * Takes the addon that was built with the package when it has the package's checksum and this system can load it;
 * compiles the package's sources when not. native/addon-file.ts finds what it makes.
 */
export function installedEngineStep({ root, home, cores }) {
  const prebuilt = join(root, 'build/native', addonName);
  const wanted = readFileSync(`${prebuilt}.sha256`, 'utf8').trim();
  const target = join(home, 'engine', wanted.slice(0, 16));
  return {
    name: 'native engine',
    needs: [],
    pending: () => !existsSync(join(target, addonName)),
    async run() {
      if (sha256(prebuilt) !== wanted)
        throw new SetupError(`${prebuilt} is damaged: its SHA-256 is not ${wanted}`, 'install the package again');
      mkdirSync(dirname(target), { recursive: true });
      const folder = mkdtempSync(`${target}-`);
      try {
        copyFileSync(prebuilt, join(folder, addonName));
        const refusal = whyItDoesNotLoad(join(folder, addonName));
        if (refusal !== undefined) await compile({ root, home, cores }, folder, refusal);
        renameSync(folder, target);
        return refusal === undefined ? 'prebuilt' : 'compiled here';
      } finally {
        rmSync(folder, { recursive: true, force: true });
      }
    },
  };
}

/** What the system's loader says, in a process of its own; undefined when the addon can be used. */
function whyItDoesNotLoad(addon) {
  const program = 'process.dlopen({ exports: {} }, process.argv[1])';
  const { status, stderr } = spawnSync(process.execPath, ['-e', program, addon], { encoding: 'utf8' });
  return status === 0 ? undefined : (/^Error: (.*)$/m.exec(stderr)?.[1] ?? stderr.trim());
}

async function compile({ root, home, cores }, folder, refusal) {
  if (cxxCompiler() === undefined || findOnPath('cmake') === undefined) {
    throw new SetupError(
      `the engine that came with petrel does not fit this system (${refusal}), and there is no compiler to build it`,
      'apt-get install g++ cmake',
    );
  }
  const build = mkdtempSync(join(home, 'engine', 'build-'));
  const hint = 'the compiler output above says where';
  try {
    await buildNative({ root, folder: build, cores, hint, more: [`-DOUTPUT_DIR=${folder}`] });
  } finally {
    rmSync(build, { recursive: true, force: true });
  }
}
