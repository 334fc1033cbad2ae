/**
 * dist/programs/: the code of each process and thread in few files, because most of a process's start is the loading of
 * modules, one by one (docs/decisions/0012).
 */

import { existsSync, readdirSync, realpathSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { checkoutStamp, contentHash } from './places.mjs';
import { programSources } from './typescript.mjs';

/**
 * Each program and its source. A program that code opens beside itself (`new URL('./thread.js', import.meta.url)`)
 * keeps the name of its source, so that it is found from the bundle and from tsc's output alike.
 */
const programs = {
  petrel: 'cli/main.ts',
  supervisor: 'infra/stack/supervisor-main.ts',
  control: 'workers/control/main.ts',
  worker: 'workers/main.ts',
  thread: 'workers/engine/process/thread.ts',
  'checkpoint-writer-thread': 'workers/engine/state/checkpoint-writer-thread.ts',
  'tokenizer-thread-main': 'models/tokenizer-thread-main.ts',
  'own-module-thread': 'infra/own-modules/own-module-thread.ts',
  'classifier-thread': 'infra/onnx/classifier-thread.ts',
  child: 'rewards/host/child.ts',
};

/** Programs in one file, without any package beside them: for machines that have only Node. */
const lonePrograms = [
  { source: 'cli/machine/join-main.ts', file: 'join.mjs' },
  { source: 'cli/machine/boot-main.ts', file: 'boot.mjs' },
];

/** Packages that find files of their own: native libraries, and the code that Temporal loads into threads. */
const apart = [/^@temporalio\//, /^tokenizers(\/|$)/, /^@swc\/core(\/|$)/, /^onnxruntime-node(\/|$)/];

/**
 * api/index.ts names everything that programs can use, and a command uses a few of these. What it does not use is not
 * loaded, because no file of api/ does anything when it is loaded.
 */
function treeshake(root) {
  const folder = join(realpathSync(root), 'api/').replace(/[^\w/]/g, '\\$&');
  return { moduleSideEffects: [{ test: new RegExp(`^${folder}`), sideEffects: false }] };
}

export function programsBundleStep({ root, force }) {
  const stamp = checkoutStamp(root, 'programs-bundle');
  const folder = join(root, 'dist/programs');
  const key = () => contentHash(root, [...programSources(root), 'setup/programs-bundle.mjs', 'package-lock.json']);
  let forced = force;
  return {
    name: 'programs',
    needs: [],
    pending: () => forced || !existsSync(join(folder, 'petrel.js')) || !stamp.holds(key()),
    async run() {
      const built = key();
      const { rolldown } = await import('rolldown');
      const input = Object.fromEntries(Object.entries(programs).map(([name, path]) => [name, join(root, path)]));
      const bundle = await rolldown({
        input,
        cwd: root,
        platform: 'node',
        external: apart,
        treeshake: treeshake(root),
      });
      const { output } = await bundle.write({
        dir: folder,
        format: 'esm',
        entryFileNames: '[name].js',
        chunkFileNames: '[name]-[hash].js',
        sourcemap: true,
      });
      await bundle.close();
      for (const { source, file } of lonePrograms) {
        const alone = await rolldown({ input: join(root, source), cwd: root, platform: 'node' });
        await alone.write({ file: join(folder, file), format: 'esm', codeSplitting: false, minify: true });
        await alone.close();
      }
      const written = new Set([...output.map(({ fileName }) => fileName), ...lonePrograms.map(({ file }) => file)]);
      for (const name of readdirSync(folder)) if (!written.has(name)) rmSync(join(folder, name));
      stamp.write(built);
      forced = false;
    },
  };
}
