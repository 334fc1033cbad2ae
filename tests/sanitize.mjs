/**
 * `npm run test:sanitize [-- --golden <folder>] [-- --inputs N] [-- --only build|engine|golden|readers]`: builds the
 * addon with AddressSanitizer and UndefinedBehaviorSanitizer into build/sanitize and runs with it the engine's own
 * tests (gradients, generation, guard pages, disposal …), the golden numbers, and the fuzzer of the readers of models.
 * Any report of a sanitizer ends its process, and so fails its test. The exit code is 1 when something failed.
 */
import { spawn, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { buildNative, cxxCompiler } from '../setup/compiler.mjs';
import { checkoutRoot } from '../setup/places.mjs';

const { values } = parseArgs({
  options: {
    golden: { type: 'string', multiple: true, default: [] },
    inputs: { type: 'string', default: '1000000' },
    only: { type: 'string', multiple: true, default: [] },
  },
});
const folder = join(checkoutRoot, 'build/sanitize');
const vitest = join(checkoutRoot, 'node_modules/vitest/vitest.mjs');

/** Node allocates without freeing at its end, and V8 uses stacks that the sanitizer does not know. */
const environment = () => ({
  PETREL_NATIVE: join(folder, 'petrel.node'),
  LD_PRELOAD: [libraryOf('libasan.so'), libraryOf('libubsan.so')].join(' '),
  // A small quarantine: the test that counts resident memory is meant to see leaks, not freed blocks that are kept.
  ASAN_OPTIONS: 'detect_leaks=0:exitcode=86:allocator_may_return_null=1:quarantine_size_mb=8:malloc_context_size=8',
  UBSAN_OPTIONS: 'print_stacktrace=1:halt_on_error=1:exitcode=86',
});

const parts = {
  async engine() {
    return await run('the engine’s tests', process.execPath, [
      vitest,
      'run',
      '--project',
      'component',
      '--project',
      'tiles',
      'native/',
    ]);
  },
  async golden() {
    const own = await run('tests/golden', process.execPath, [vitest, 'run', 'tests/conformance']);
    let all = own;
    for (const more of values.golden) {
      const program = join(checkoutRoot, 'dist/tests/conformance/cli.js');
      const args = [program, resolve(more), '--only', 'models,optim,sampling'];
      // 1: a family that is not built, or a number that differs; `npm run golden` judges those.
      all = (await run(more, process.execPath, args, {}, [0, 1])) && all;
    }
    return all;
  },
  async readers() {
    return await run(`${values.inputs} inputs`, process.execPath, [vitest, 'run', 'tests/readers-fuzz.test.ts'], {
      PETREL_FUZZ_RUNS: values.inputs,
    });
  },
};

/**
 * The sanitizer's library of the compiler that built the addon: Node itself was built without, so it is loaded first.
 */
function libraryOf(name) {
  const { stdout } = spawnSync(cxxCompiler(), [`-print-file-name=${name}`], { encoding: 'utf8' });
  const path = stdout?.trim() ?? '';
  if (existsSync(path) && path.startsWith('/')) return path;
  throw new Error(`${name} of ${cxxCompiler()} was not found; install the compiler's sanitizer libraries`);
}

async function build() {
  const more = ['-DPETREL_SANITIZE=ON', `-DOUTPUT_DIR=${folder}`];
  await buildNative({ root: checkoutRoot, folder, cores: availableParallelism(), more });
}

/** `good`: exit codes that are no report of a sanitizer. */
async function run(what, command, args, more = {}, good = [0]) {
  console.log(`\n== ${what}`);
  const child = spawn(command, args, {
    cwd: checkoutRoot,
    env: { ...process.env, ...environment(), ...more },
    stdio: 'inherit',
  });
  const [code, signal] = await new Promise((done) => child.once('close', (...ending) => done(ending)));
  if (code !== 0) console.log(`== ${what}: ended with ${signal ?? code}`);
  return good.includes(code);
}

const unknown = values.only.filter((name) => name !== 'build' && !Object.hasOwn(parts, name));
if (unknown.length > 0) throw new Error(`--only is build, ${Object.keys(parts).join(', ')}; got ${unknown.join(', ')}`);
await build();
const wanted = Object.keys(parts).filter((name) => values.only.length === 0 || values.only.includes(name));
const failed = [];
for (const name of wanted) if (!(await parts[name]())) failed.push(name);
console.log(
  `\n${wanted.length - failed.length} parts passed, ${failed.length} failed${failed.map((name) => ` ${name}`)}`,
);
process.exitCode = failed.length > 0 ? 1 : 0;
