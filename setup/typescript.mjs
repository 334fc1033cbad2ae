/** TypeScript → dist/, the workflow bundle, and the id of what was built. */

import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { nativeHash } from './native.mjs';
import { checkoutStamp, contentHash, filesBelow, writeAtomically } from './places.mjs';
import { runProgram } from './programs.mjs';

const isSource = (path) => path.endsWith('.ts') && !path.endsWith('.d.ts');

export const sourceFolders = (root) => JSON.parse(readFileSync(join(root, 'tsconfig.json'), 'utf8')).include;

/** Sources of what processes run: all but tests and benchmarks. */
export function programSources(root) {
  const folders = sourceFolders(root).filter((folder) => folder !== 'tests' && folder !== 'bench');
  return filesBelow(root, folders, (path) => isSource(path) && !path.endsWith('.test.ts'));
}

/**
 * tsc is incremental: unchanged files cost it nothing, and the stamp saves even its start. Type errors stop the set-up.
 */
export function typescriptStep({ root, force }) {
  const stamp = checkoutStamp(root, 'typescript');
  const sources = () => filesBelow(root, sourceFolders(root), (path) => path.endsWith('.ts'));
  const key = () => contentHash(root, [...sources(), 'tsconfig.json', 'package-lock.json']);
  let forced = force;
  return {
    name: 'TypeScript',
    needs: [],
    pending: () => forced || !existsSync(join(root, 'dist/.tsbuildinfo')) || !stamp.holds(key()),
    async run() {
      const built = key();
      removeGhosts(root);
      await runProgram(join(root, 'node_modules/.bin/tsc'), ['--project', root], {
        cwd: root,
        what: 'tsc',
        hintOf: (output) => (/error TS\d/.test(output) ? 'fix the type errors above' : lastLine(output)),
      });
      stamp.write(built);
      forced = false;
      return `${sources().length} files`;
    },
  };
}

/** A compiler that was ended, or had too little memory, says so last. */
const lastLine = (output) =>
  output.trim().split('\n').at(-1) || 'it said nothing: look at the free memory and at `ulimit -a`';

/** Outputs whose source is gone would still be imported, tested and bundled. */
function removeGhosts(root) {
  const outputs = sourceFolders(root).map((folder) => `dist/${folder}`);
  for (const output of filesBelow(root, outputs, (path) => /\.js(\.map)?$/.test(path))) {
    const source = output.slice('dist/'.length).replace(/\.js(\.map)?$/, '.ts');
    if (!existsSync(join(root, source))) rmSync(join(root, output));
  }
}

/**
 * The workflow code as Temporal's sandbox runs it, made ahead because bundling would cost every worker start seconds.
 */
export function workflowBundleStep({ root, force }) {
  const stamp = checkoutStamp(root, 'workflow-bundle');
  const key = () => {
    const sources = filesBelow(root, ['workflows', 'core'], (path) => isSource(path) && !path.endsWith('.test.ts'));
    return contentHash(root, [...sources, 'infra/temporal/bundle.ts', 'package-lock.json']);
  };
  let forced = force;
  return {
    name: 'workflow bundle',
    needs: [],
    pending: () =>
      existsSync(join(root, 'workflows/index.ts')) &&
      (forced || !existsSync(join(root, 'dist/workflow-bundle.js')) || !stamp.holds(key())),
    async run() {
      const built = key();
      await runProgram(process.execPath, [join(root, 'dist/infra/temporal/bundle.js')], {
        cwd: root,
        what: 'the workflow bundler',
        hint: 'a workflow may import only core and @temporalio/workflow',
      });
      stamp.write(built);
      forced = false;
    },
  };
}

/**
 * dist/build-id: one line that changes when the code that processes run changes; tests and benchmarks are no part of
 * it. `petrel up` recognises by it a stack that was started from an older build.
 */
export function buildIdStep({ root }) {
  const path = join(root, 'dist/build-id');
  const id = () => contentHash(root, [...programSources(root), 'package-lock.json'], nativeHash(root)).slice(0, 16);
  return {
    name: 'build id',
    needs: [],
    pending: () => !existsSync(path) || readFileSync(path, 'utf8') !== id(),
    async run() {
      writeAtomically(path, id());
      return id();
    },
  };
}
