/**
 * Built-in scorers in Python: the modules of rewards/python, with the packages that set-up has fetched into PETREL_HOME
 * (setup/scorers.mjs) and nothing of the user's own Python.
 */
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { UnfitError } from '../../core/errors.ts';
import { packageFile } from '../package-file.ts';

/** The module of this folder, and the environment in which it finds its packages. */
export interface PythonProgram {
  readonly module: string;
  readonly env: Readonly<Record<string, string>>;
}

/** The packages must be on this machine: `checkPackagesHere`. */
export function pythonProgram(module: string): PythonProgram {
  return {
    module: packageFile('rewards', 'python', module),
    // The order of sets must not depend on the process: SymPy's results may. Warnings would be about the text of
    // responses.
    env: { PYTHONPATH: packagesFolder(), PYTHONNOUSERSITE: '1', PYTHONHASHSEED: '0', PYTHONWARNINGS: 'ignore' },
  };
}

/** @throws UnfitError `NoScorerPackages` with what to type. */
export function checkPackagesHere(scorer: string): void {
  if (hasPackages()) return;
  throw new UnfitError(
    'NoScorerPackages',
    `the scorer ${scorer} needs Python packages that are not in ${packagesFolder()}`,
    { hint: `node ${packageFile('setup', 'main.mjs')} --scorers` },
  );
}

export function hasPackages(): boolean {
  return existsSync(join(packagesFolder(), '.complete'));
}

function packagesFolder(): string {
  const home = resolve(process.env['PETREL_HOME'] || join(homedir(), '.petrel'));
  return join(home, 'toolchain', `scorers-${listId()}`);
}

let knownId: string | undefined;

/** The list's digest names the folder, so that another list is another folder. */
function listId(): string {
  if (knownId !== undefined) return knownId;
  const list = readFileSync(packageFile('rewards', 'python', 'requirements.txt'), 'utf8');
  knownId = createHash('sha256').update(list).digest('hex').slice(0, 16);
  return knownId;
}
