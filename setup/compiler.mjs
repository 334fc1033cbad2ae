/**
 * The compiler, and how it is called. The bits of the engine depend on its flags, so the flags are the project's alone:
 * what a person's shell, module system or distribution sets for other builds (CXXFLAGS, LDFLAGS, CPATH, CMAKE_*) is
 * left out.
 */

import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { isAbsolute, join } from 'node:path';
import { findOnPath, runProgram } from './programs.mjs';
import { isExecutable } from './toolchain.mjs';

const launchers = /^(ccache|sccache|distcc|icecc|env|nice)$/;
const keptVariables = ['PATH', 'LD_LIBRARY_PATH', 'HOME', 'TMPDIR', 'USER'];

/**
 * The C++ compiler: CXX, else the usual names. CXX may be a command (`ccache g++ -m64`): its program is used, its flags
 * and what it starts the program with are not. Undefined where there is none.
 */
export function cxxCompiler() {
  return [...namedCompilers(), 'c++', 'g++', 'clang++'].map(pathOf).find((path) => path !== undefined);
}

/** The value of CXX when it names no program that is there; else undefined. */
export function absentCxx() {
  const names = namedCompilers();
  return names.length === 0 || names.some((name) => pathOf(name) !== undefined) ? undefined : names[0];
}

/** What CXX may name: the whole of it, or the program in a command. */
function namedCompilers() {
  const named = process.env.CXX?.trim() ?? '';
  if (named === '') return [];
  const words = named.split(/\s+/).filter((word) => !word.startsWith('-') && !word.includes('='));
  const [program] = words.filter((word) => !launchers.test(word.slice(word.lastIndexOf('/') + 1)));
  return program === undefined ? [named] : [named, program];
}

const pathOf = (name) => {
  if (!name) return undefined;
  if (isAbsolute(name)) return isExecutable(name) ? name : undefined;
  return findOnPath(name);
};

/** Names a compiler by what it says of itself, path, version and target: a new one under the same path builds again. */
export function compilerIdentity(compiler = cxxCompiler()) {
  if (compiler === undefined) return '';
  const ask = (option) => spawnSync(compiler, [option], { env: buildEnvironment(), encoding: 'utf8' }).stdout ?? '';
  const said = [compiler, ask('--version'), ask('-dumpmachine')];
  return createHash('sha256').update(said.join('\0')).digest('hex').slice(0, 16);
}

/**
 * What compilers and cmake see of the environment: where programs are, and where they may write. Everything else is
 * named and undefined, so that a spread over `process.env` removes it.
 */
export function buildEnvironment() {
  const of = (name) => (keptVariables.includes(name) ? process.env[name] : undefined);
  return { ...Object.fromEntries(Object.keys(process.env).map((name) => [name, of(name)])), LC_ALL: 'C' };
}

/** Whether warnings end the build: only where PETREL_WERROR asks for it, as CI does. */
export const warningsAreErrors = () => /^(1|on|true)$/i.test(process.env.PETREL_WERROR ?? '');

/**
 * Flags that a person adds to those of the engine: the one named option. The arithmetic of such a build has another
 * name, so that nothing mistakes its results for the ones of the project's flags.
 */
const addedFlags = () => process.env.PETREL_CXX_FLAGS ?? '';

/** What decides the build of `native/` in `folder`, besides its sources. */
export function configuration(root, folder, ...more) {
  return [
    ...['-S', join(root, 'native'), '-B', folder, '-G', generator()],
    `-DCMAKE_CXX_COMPILER=${cxxCompiler() ?? ''}`,
    `-DPETREL_COMPILER=${compilerIdentity()}`,
    `-DPETREL_CXX_FLAGS=${addedFlags()}`,
    `-DPETREL_WERROR=${warningsAreErrors() ? 'ON' : 'OFF'}`,
    `-DPETREL_NODE=${process.execPath}`,
    ...more,
  ];
}

/** Configures and builds `native/` in `folder`. */
export async function buildNative({ root, folder, cores, hint, more = [] }) {
  const env = buildEnvironment();
  await runProgram('cmake', configuration(root, folder, ...more), { env, hint, what: 'cmake (configure)' });
  const build = ['--build', folder, '--parallel', String(cores)];
  await runProgram('cmake', build, { env, hint, what: 'the build of native/' });
}

export const generator = () => (findOnPath('ninja') ? 'Ninja' : 'Unix Makefiles');
