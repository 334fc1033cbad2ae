/** The Python that runs programs of a model: `PETREL_PYTHON`, or `python3`, with the files that it needs. */
import { spawnSync } from 'node:child_process';
import { dirname, join } from 'node:path';
import { UnfitError } from '../../core/errors.ts';
import { scorerEnvironment } from '../environment.ts';
import type { Bind } from './mounts.ts';

export interface PythonFiles {
  /** The interpreter's path. */
  readonly program: string;
  /** The interpreter with its standard library and installed packages. */
  readonly binds: readonly Bind[];
  /**
   * Folders of packages that the environment adds: PYTHONPATH, the user's own packages, projects installed for editing.
   */
  readonly addedPaths: readonly string[];
}

/** The oldest Python that has process descriptors, which the runner waits for. */
const oldest = [3, 9] as const;
const probeMs = 30_000;

const probe = `
import json, os, sys, sysconfig
paths = sysconfig.get_paths()
print(json.dumps({
  "program": sys.executable,
  "version": sys.version_info[:2],
  "prefixes": [sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix],
  "packages": [paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")],
  "path": [folder for folder in sys.path if os.path.isabs(folder)],
}))
`;

interface Probed {
  readonly program: string;
  readonly version: readonly [number, number];
  readonly prefixes: readonly string[];
  readonly packages: readonly string[];
  readonly path: readonly string[];
}

const known = new Map<string, PythonFiles>();

export const pythonCommand = () => process.env['PETREL_PYTHON'] ?? 'python3';

/** Asks the interpreter, once per process. Throws UnfitError `NoPython` with what to type. */
export function findPython(command = pythonCommand()): PythonFiles {
  const found = known.get(command) ?? filesOf(askPython(command));
  known.set(command, found);
  return found;
}

function askPython(command: string): Probed {
  const { stdout, stderr, error } = spawnSync(command, ['-c', probe], {
    encoding: 'utf8',
    timeout: probeMs,
    env: scorerEnvironment(process.env),
  });
  const hint = 'apt-get install python3, or set PETREL_PYTHON to the path of an interpreter';
  try {
    const probed = JSON.parse(stdout) as Probed;
    if (isAtLeast(probed.version)) return probed;
    throw new UnfitError(
      'NoPython',
      `${command} is Python ${probed.version.join('.')}, ${oldest.join('.')} is needed`,
      {
        hint,
      },
    );
  } catch (refusal) {
    if (refusal instanceof UnfitError) throw refusal;
    const reason = error?.message ?? stderr.trim().split('\n').at(-1);
    throw new UnfitError('NoPython', `${command} cannot be used as a Python interpreter: ${reason}`, { hint });
  }
}

const isAtLeast = ([major, minor]: Probed['version']) =>
  major > oldest[0] || (major === oldest[0] && minor >= oldest[1]);

function filesOf({ program, prefixes, packages, path }: Probed): PythonFiles {
  const libraries = [...new Set(prefixes)].flatMap((prefix) =>
    ['lib', 'lib64', 'pyvenv.cfg'].map((name) => join(prefix, name)),
  );
  const binds = [program, ...libraries, ...packages, join(dirname(program), '..', 'pyvenv.cfg')];
  const home = process.env['HOME'];
  return {
    program,
    binds: binds.map((one) => ({ path: one })),
    addedPaths: path.filter((folder) => folder !== '/' && folder !== home && !packages.includes(folder)),
  };
}
