/** The files of its own folder that a scorer in Python imports, and the list of the packages that it names. */
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { InvalidInputError } from '../../core/errors.ts';
import { scorerEnvironment } from '../../rewards/environment.ts';
import { packageFile } from '../../rewards/package-file.ts';
import { pythonCommand } from '../../rewards/sandbox/python.ts';

interface Imports {
  readonly files: readonly string[];
  readonly missing: readonly { readonly file: string; readonly line: number; readonly name: string }[];
}

/** Longest time for reading the scorer's files. */
const limitMs = 60_000;

/**
 * Gathers the files of a scorer, by path from the scorer's folder. @throws InvalidInputError with the file and line of
 * an import that is nowhere, unless the scorer names packages.
 */
export async function filesOfPython(entry: string, namesPackages: boolean): Promise<Map<string, Uint8Array>> {
  const { files, missing } = await importsOf(entry);
  const [first] = missing;
  if (first !== undefined && !namesPackages)
    throw new InvalidInputError(`the scorer imports ${first.name}, which is neither in its folder nor installed`, {
      where: `./${first.file}:${first.line}`,
      hint: 'name its packages in reward.custom_reward_function.requirements, or install them for PETREL_PYTHON',
    });
  const root = dirname(entry);
  return new Map(await Promise.all(files.map(async (path) => [path, await readFile(join(root, path))] as const)));
}

async function importsOf(entry: string): Promise<Imports> {
  const program = packageFile('rewards', 'host', 'imports.py');
  try {
    const { stdout } = await promisify(execFile)(pythonCommand(), [program, entry], {
      timeout: limitMs,
      env: scorerEnvironment(process.env),
    });
    return JSON.parse(stdout) as Imports;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return { files: [], missing: [] }; // loading it says so
    throw error;
  }
}

/** @throws InvalidInputError with the line that is no package with a version and hashes. */
export function checkRequirements(text: string, path: string): void {
  const lines = text.replaceAll('\\\n', '  ').split('\n');
  const wrong = lines.findIndex((line) => !requirement.test(line));
  if (wrong === -1) return;
  throw new InvalidInputError(`${path}: expected name==version --hash=sha256:…, got ${lines[wrong]?.trim()}`, {
    where: `${path}:${wrong + 1}`,
    hint: 'pip-compile --generate-hashes writes such a list, with the packages that the packages need',
  });
}

const requirement =
  /^\s*(#.*)?$|^\s*[A-Za-z0-9][\w.-]*(\[[\w,.-]*\])?==[^\s;]+(\s*;[^#]*?)?(\s+--hash=sha256:[0-9a-f]{64})+\s*(#.*)?$/;
