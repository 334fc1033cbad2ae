/**
 * `npm run gpu:check`: what a GPU does with the torch engine (engines/torch/gpu_check.py), with the Python that
 * `petrel engine install torch` has written down. `-- --device cpu --small` tries the program itself on a processor.
 */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { checkoutRoot, petrelHome } from './places.mjs';

const home = petrelHome();
const words = process.argv.slice(2);
const onProcessor = words.join(' ').match(/--device[ =]cpu\b/) !== null;
const names = onProcessor ? ['torch-cpu'] : ['torch-cuda', 'torch-rocm'];
const found = names.map(pythonOf).find((python) => python !== undefined);
if (found === undefined) {
  const command = onProcessor ? 'petrel engine install torch' : 'petrel engine install torch --device cuda';
  console.error(`no Python of the torch engine is in ${join(home, 'engines')} (${names.join(', ')}): ${command}`);
  process.exit(8);
}
const program = join(checkoutRoot, 'engines', 'torch', 'gpu_check.py');
const { status, error } = spawnSync(found, ['-I', '-B', program, ...words], { stdio: 'inherit' });
if (error !== undefined) {
  console.error(`${found} does not start (${error.message}): petrel engine install torch`);
  process.exit(8);
}
process.exit(status ?? 1);

/** The Python of an environment of PETREL_HOME/engines. Undefined: none is installed. */
function pythonOf(name) {
  try {
    return JSON.parse(readFileSync(join(home, 'engines', name, 'environment.json'), 'utf8')).python;
  } catch (error) {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  }
}
