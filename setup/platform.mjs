/** What petrel needs from the machine. All that is missing is said at once, each with its remedy. */

import { readFileSync } from 'node:fs';
import { cxxCompiler } from './compiler.mjs';
import { smallLimits } from './limits.mjs';
import { pythonWithPip } from './pip.mjs';
import { findOnPath } from './programs.mjs';
import { SetupError } from './report.mjs';

const nodeFloor = [20, 19];

/** Refuses machines that cannot work, before anything is fetched. Costs a few milliseconds. */
export function checkPlatform() {
  if (process.platform !== 'linux' || process.arch !== 'x64') {
    throw new SetupError(
      `petrel runs on Linux x86-64; this is ${process.platform} ${process.arch}`,
      'use a Linux x86-64 machine, virtual machine or container',
    );
  }
  const [major, minor] = process.versions.node.split('.').map(Number);
  if (major < nodeFloor[0] || (major === nodeFloor[0] && minor < nodeFloor[1])) {
    throw new SetupError(
      `Node ${nodeFloor.join('.')} or newer is needed; this is ${process.versions.node}`,
      'install Node 20 LTS or newer',
    );
  }
  if (!glibcVersion()) {
    throw new SetupError(
      'petrel needs glibc; this system has another C library (Alpine, musl)',
      'use a Debian, Ubuntu or Fedora image',
    );
  }
  if (!/^flags\s*:.*\bavx2\b/m.test(readFileSync('/proc/cpuinfo', 'utf8'))) {
    throw new SetupError(
      "this processor does not have AVX2, which petrel's engine needs",
      'any x86-64 server or laptop since about 2015 has it; a virtual machine must pass it through',
    );
  }
}

/** Asked when there is work to do: an up-to-date set-up needs nothing. */
export function checkLimits() {
  const small = smallLimits();
  if (small.length === 0) return;
  throw new SetupError(small.map(({ detail }) => detail).join('; '), small.map(({ fix }) => fix).join('; '));
}

function glibcVersion() {
  process.report.excludeNetwork = true; // else it resolves host names
  return process.report.getReport().header.glibcVersionRuntime;
}

const remedies = {
  python: [
    'python3 with pip',
    'apt-get install python3 python3-pip   (it downloads pinned wheels; nothing is installed into it)',
    () => pythonWithPip() !== undefined,
  ],
  compiler: ['a C++ compiler', 'apt-get install g++', () => cxxCompiler() !== undefined],
  cmake: ['cmake', 'apt-get install cmake', () => findOnPath('cmake') !== undefined],
};

/** Checks the tools that the pending steps need (`python`, `compiler`, `cmake`). */
export function checkTools(needed) {
  const missing = [...new Set(needed)].map((need) => remedies[need]).filter(([, , present]) => !present());
  if (missing.length === 0) return;
  throw new SetupError(
    `missing on this machine: ${missing.map(([what]) => what).join(', ')}`,
    missing.map(([, remedy]) => remedy).join('\n→ '),
  );
}
