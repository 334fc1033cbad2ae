/**
 * What a user's scorer needs besides its module: other files of its folder, packages of JavaScript below
 * `node_modules`, and a list of Python packages. All of it is one blob of the run, which a worker unpacks beside the
 * module.
 */
import { randomBytes } from 'node:crypto';
import { chmod, mkdir, rename, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { InvalidInputError } from '../core/errors.ts';

export interface ScorerFiles {
  /** Files by path from the module's folder, with `/`. */
  readonly files: ReadonlyMap<string, Uint8Array>;
  /** The text of `reward.custom_reward_function.requirements`. */
  readonly requirements?: string | undefined;
}

/** The module itself is none of its files. */
export interface WholeScorer extends ScorerFiles {
  readonly fileName: string;
  readonly module: Uint8Array;
}

/** Equal files give equal bytes. */
export function encodeScorerFiles({ files, requirements }: ScorerFiles): Uint8Array {
  const sorted = [...files].sort(([a], [b]) => (a < b ? -1 : 1));
  const texts = Object.fromEntries(sorted.map(([path, bytes]) => [path, Buffer.from(bytes).toString('base64')]));
  return new TextEncoder().encode(
    JSON.stringify({ format: 1, files: texts, ...(requirements !== undefined && { requirements }) }),
  );
}

/** @throws InvalidInputError when a path leads out of the folder, or the bytes are something else. */
export function decodeScorerFiles(bytes: Uint8Array): ScorerFiles {
  const { format, files, requirements } = JSON.parse(new TextDecoder().decode(bytes)) as Record<string, unknown>;
  if (format !== 1 || typeof files !== 'object' || files === null)
    throw new InvalidInputError(`expected the files of a scorer in format 1, got format ${String(format)}`);
  const entries = Object.entries(files).map(([path, text]) => {
    if (!isInside(path) || typeof text !== 'string')
      throw new InvalidInputError(
        `a file of a scorer has the path ${JSON.stringify(path)}, which leads out of its folder`,
      );
    return [path, new Uint8Array(Buffer.from(text, 'base64'))] as const;
  });
  return { files: new Map(entries), ...(typeof requirements === 'string' && { requirements }) };
}

/** Is it a path below a folder, without detours? */
const isInside = (path: string): boolean =>
  path.split('/').every((part) => part !== '' && part !== '.' && part !== '..' && !/[\\\0]/.test(part));

/**
 * Writes all files and returns the path of the module. Other processes may be loading the same files from there. In a
 * sandbox another user reads them.
 */
export async function writeScorer(folder: string, { fileName, module, files }: WholeScorer): Promise<string> {
  const write = async (path: string, bytes: Uint8Array) => {
    const target = join(folder, path);
    const partial = join(dirname(target), `.${randomBytes(6).toString('hex')}`);
    await writeFile(partial, bytes);
    await chmod(partial, 0o644);
    await rename(partial, target);
  };
  for (const path of new Set(['.', ...[...files.keys()].flatMap(foldersOf)])) {
    await mkdir(join(folder, path), { recursive: true });
    await chmod(join(folder, path), 0o755);
  }
  for (const [path, bytes] of files) await write(path, bytes);
  await write(fileName, module);
  return join(folder, fileName);
}

/** The outermost first. */
function foldersOf(path: string): string[] {
  const folder = dirname(path);
  return folder === '.' ? [] : [...foldersOf(folder), folder];
}
