/**
 * The flags of the engine are the project's: nothing that is set for other builds changes what the compiler is told.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { packageRoot } from './package-root.ts';

const root = packageRoot();
const folder = mkdtempSync(join(tmpdir(), 'petrel-flags-'));
afterAll(() => rmSync(folder, { recursive: true }));

const isMissing = spawnSync('cmake', ['--version']).status !== 0;
let made = 0;

/** What each file is compiled and linked with, after a configuration with this environment and these arguments. */
function commands(environment: Readonly<Record<string, string>>, ...more: string[]): string {
  const build = join(folder, `build-${made++}`);
  const args = ['-S', join(root, 'native'), '-B', build, '-G', 'Unix Makefiles', `-DOUTPUT_DIR=${folder}/out`, ...more];
  execFileSync('cmake', args, { env: { ...process.env, ...environment }, stdio: 'pipe' });
  const files = ['petrel', 'kernels_avx2', 'kernels_avx512'].flatMap((target) => {
    const read = (name: string) => readFileSync(join(build, `CMakeFiles/${target}.dir`, name), 'utf8');
    return target === 'petrel' ? [read('flags.make'), read('link.txt')] : [read('flags.make')];
  });
  return files.join('').replaceAll(build, 'BUILD');
}

/** A compiler's environment as module systems, distributions and people set it. */
const hostile = {
  CXXFLAGS: '-ffast-math -funsafe-math-optimizations',
  CFLAGS: '-ffast-math',
  CPPFLAGS: '-DNDEBUG=2',
  LDFLAGS: '-ffast-math -Wl,-O2',
  CMAKE_BUILD_TYPE: 'Debug',
  CMAKE_CXX_COMPILER_LAUNCHER: '',
};

describe.skipIf(isMissing)('a configuration of the engine (skipped: needs cmake)', () => {
  const usual = commands({});

  it('ignores the flags of the environment, of a toolchain file, and those that cmake takes for every project', () => {
    const flags = ['CXX_FLAGS', 'CXX_FLAGS_RELEASE', 'SHARED_LINKER_FLAGS'].map(
      (name) => `-DCMAKE_${name}=-ffast-math`,
    );
    const toolchain = join(folder, 'toolchain.cmake');
    writeFileSync(toolchain, 'set(CMAKE_CXX_FLAGS_INIT "-Ofast")\nset(CMAKE_SHARED_LINKER_FLAGS_INIT "-Ofast")\n');
    const environment = { ...hostile, CMAKE_TOOLCHAIN_FILE: toolchain };
    expect(commands(environment, ...flags, '-DCMAKE_BUILD_TYPE=Debug')).toBe(usual);
  });

  it('ends the flags with those that undo what a wrapper of the compiler puts first', () => {
    const compiler = execFileSync('sh', ['-c', 'command -v g++ || command -v clang++'], { encoding: 'utf8' }).trim();
    const wrapper = join(folder, 'wrapped++');
    writeFileSync(wrapper, `#!/bin/sh\nexec ${compiler} -Ofast -ffinite-math-only "$@"\n`);
    chmodSync(wrapper, 0o755);
    const flags = /CXX_FLAGS = (.*)/.exec(usual)?.[1]?.split(/\s+/) ?? [];
    const source = join(folder, 'macros.cpp');
    writeFileSync(source, '');
    const macros = execFileSync(wrapper, [...flags, '-dM', '-E', source], { encoding: 'utf8' });
    expect(macros).toContain('#define __FINITE_MATH_ONLY__ 0');
    expect(macros).not.toContain('__FAST_MATH__');
  });

  it('takes flags by one option, which is named in the build', () => {
    const own = commands({}, '-DPETREL_CXX_FLAGS=-ffast-math -funroll-loops');
    expect(own).not.toBe(usual);
    expect(own).toContain('-ffast-math -funroll-loops');
  });
});

describe('the set-up of the engine', () => {
  /** What setup/compiler.mjs says in a process with this environment. */
  function asked(expression: string, environment: Readonly<Record<string, string>>): unknown {
    const program = `import * as c from ${JSON.stringify(join(root, 'setup/compiler.mjs'))};
      console.log(JSON.stringify(${expression}));`;
    const env = { PATH: process.env['PATH'] ?? '', ...environment };
    return JSON.parse(
      execFileSync(process.execPath, ['--input-type=module', '-e', program], { env, encoding: 'utf8' }),
    );
  }

  it('gives compilers an environment of its own', () => {
    const set = { ...hostile, CPATH: '/x', CPLUS_INCLUDE_PATH: '/x', LIBRARY_PATH: '/x', GCC_EXEC_PREFIX: '/x/' };
    const more = { CCC_OVERRIDE_OPTIONS: '+-Ofast', MAKEFLAGS: '-n', NODE_OPTIONS: '--no-warnings' };
    const seen = asked('c.buildEnvironment()', { ...set, ...more, HOME: '/home/x' });
    expect(Object.keys(seen as object).sort()).toEqual(['HOME', 'LC_ALL', 'PATH']);
  });

  it('takes the compiler of CXX, and not its flags', () => {
    const plain = asked('c.cxxCompiler()', { CXX: 'g++' });
    for (const CXX of ['g++ -ffast-math', 'ccache g++ -m64', 'nice g++', 'no-such-compiler'])
      expect(asked('c.cxxCompiler()', { CXX }), CXX).toEqual(
        CXX.startsWith('no') ? asked('c.cxxCompiler()', {}) : plain,
      );
  });

  it('builds again for another compiler, and for other flags', () => {
    const key = (environment: Readonly<Record<string, string>>) =>
      asked('c.configuration("/petrel", "/petrel/build")', environment);
    expect(key(hostile)).toEqual(key({}));
    expect(key({ PETREL_CXX_FLAGS: '-O2' })).not.toEqual(key({}));
    const fake = join(folder, 'fake++');
    const say = (version: string) => writeFileSync(fake, `#!/bin/sh\necho fake ${version}\n`, { mode: 0o755 });
    say('1');
    const first = key({ CXX: fake });
    say('2');
    expect(key({ CXX: fake })).not.toEqual(first);
  });

  it('lets warnings end the build only where that is asked for', () => {
    expect(asked('c.warningsAreErrors()', { CI: 'true' })).toBe(false);
    expect(asked('c.warningsAreErrors()', { PETREL_WERROR: '1' })).toBe(true);
  });
});
