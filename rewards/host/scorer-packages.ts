/** The Python packages that a scorer names, in a folder of this machine: fetched by pip once, by their hashes. */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { UnfitError } from '../../core/errors.ts';
import { packageFile } from '../package-file.ts';
import { findPython, pythonCommand } from '../sandbox/python.ts';
import { pathExists } from './path-exists.ts';

const limitMs = 10 * 60 * 1000;
/** The most characters of pip's words. */
const mostSaid = 800;

/**
 * The folder, below `cache`. Its name contains the list and the interpreter, because wheels may be built for one
 * version.
 * @throws UnfitError `NoScorerPackages` when pip cannot fetch them.
 */
export async function scorerPackages(cache: string, requirements: string): Promise<string> {
  const { program } = findPython();
  const id = createHash('sha256')
    .update(JSON.stringify([program, requirements]))
    .digest('hex')
    .slice(0, 32);
  const parent = join(cache, 'scorer-packages');
  const folder = join(parent, id);
  if (await pathExists(folder)) return folder;
  await mkdir(parent, { recursive: true });
  const work = await mkdtemp(join(parent, `.${id}-`));
  try {
    await install(requirements, work);
    // Another worker of this machine may have been faster.
    await rename(join(work, 'packages'), folder).catch(async (error: unknown) => {
      if (!(await pathExists(folder))) throw error;
    });
    return folder;
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

async function install(requirements: string, work: string): Promise<void> {
  const list = join(work, 'requirements.txt');
  await writeFile(list, requirements);
  const words = ['--require-hashes', '--only-binary=:all:', '--no-deps', '--no-input', '--disable-pip-version-check'];
  const pip = ['-E', packageFile('rewards', 'host', 'chosen_pip.py')];
  const args = [...pip, 'install', ...words, '--quiet', '--target', join(work, 'packages'), '-r', list];
  try {
    await promisify(execFile)(pythonCommand(), args, { timeout: limitMs });
  } catch (error) {
    const { stderr, message } = error as { readonly stderr?: string; readonly message: string };
    const said = (stderr ?? '').replaceAll(/\s+/g, ' ').trim().slice(0, mostSaid) || message;
    throw new UnfitError('NoScorerPackages', `pip cannot install the packages that the scorer names: ${said}`, {
      hint: `try it: ${pythonCommand()} ${pip.join(' ')} install ${words.slice(0, 3).join(' ')} --target /tmp/packages -r <the list>`,
    });
  }
}
