/** One build of the engine with each other compiler of this machine: newer and older ones than its own. */
import { equal } from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { packageRoot } from '../../infra/home.ts';

/** The names that Debian and Ubuntu give to compilers. */
const names = [
  ...[11, 12, 13, 14].map((version) => `g++-${version}`),
  ...[14, 15, 16, 17, 18, 19].map((version) => `clang++-${version}`),
];

const isHere = (name: string): boolean => spawnSync(name, ['--version'], { stdio: 'ignore' }).status === 0;

/** A row for each compiler that is installed. */
export const compilerRows = () =>
  names.filter(isHere).map((name) => ({ title: `${name}: the engine is built and loads`, play: () => builds(name) }));

async function builds(name: string): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'petrel-build-'));
  const module = join(packageRoot(), 'setup/compiler.mjs');
  const program = `import { buildNative } from ${JSON.stringify(module)};
await buildNative({ root: ${JSON.stringify(packageRoot())}, folder: ${JSON.stringify(folder)}, cores: 2, hint: '', more: ['-DOUTPUT_DIR=${folder}'] });
process.dlopen({ exports: {} }, ${JSON.stringify(join(folder, 'petrel.node'))});
console.log('loads');`;
  try {
    const env = { ...process.env, CXX: name };
    const said = execFileSync(process.execPath, ['--input-type=module', '-e', program], { env, encoding: 'utf8' });
    equal(said.trim(), 'loads');
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
