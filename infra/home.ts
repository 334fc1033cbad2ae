/** PETREL_HOME, the package's own folder, and the tools that set-up has found. */
import { chmodSync, existsSync, mkdirSync, readFileSync, realpathSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { InvalidInputError, TerminalError } from '../core/errors.ts';

/** PETREL_HOME, or `~/.petrel`; created if missing. Only its user can open it, because it contains tokens. */
export function petrelHome(env: NodeJS.ProcessEnv = process.env): string {
  const home = resolve(env['PETREL_HOME'] || join(userHome(), '.petrel'));
  mkdirSync(home, { recursive: true, mode: 0o700 });
  if ((statSync(home).mode & 0o077) !== 0) chmodSync(home, 0o700);
  return realpathSync(home); // one canonical path, by which the processes of its stack are recognised
}

/** The user's home folder. Throws InvalidInputError for a user id that the system does not know, without HOME. */
export function userHome(): string {
  try {
    return homedir();
  } catch (cause) {
    throw new InvalidInputError(`expected a home folder, found none for user id ${process.getuid?.()}`, {
      hint: 'export HOME=/a/folder/of/yours',
      cause,
    });
  }
}

/** The folder of petrel's package.json; the same whether this file runs from source or from dist/. */
export function packageRoot(): string {
  let folder = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(folder, 'package.json'))) {
    const parent = dirname(folder);
    if (parent === folder)
      throw new TerminalError('Broken', 'petrel is not inside a package', { where: import.meta.url });
    folder = parent;
  }
  return folder;
}

/** Path of a built file, such as `workflow-bundle.js`. Throws `InvalidInput` when it has not been built. */
export function builtFile(path: string): string {
  const file = join(packageRoot(), 'dist', path);
  if (!existsSync(file))
    throw new InvalidInputError(`petrel is not built: dist/${path} is missing`, { hint: 'npm run build' });
  return file;
}

/** Path of a process's or a thread's bundled code: setup/programs-bundle.mjs lists them. */
export const builtProgram = (name: string): string => builtFile(`programs/${name}.js`);

/** Changes whenever the code of the processes changes; `unknown` when set-up did not make the build. */
export function buildId(): string {
  const file = join(packageRoot(), 'dist/build-id');
  return existsSync(file) ? readFileSync(file, 'utf8') : 'unknown';
}

const toolSchema = z.object({ path: z.string(), version: z.string() });
const toolsSchema = z.object({ temporal: toolSchema, 'nats-server': toolSchema });

/** A program that set-up has chosen: the one on PATH, or the one of its pinned wheel. */
export type Tool = z.infer<typeof toolSchema>;
export type Tools = z.infer<typeof toolsSchema>;

/** Reads `toolchain/tools.json`. Throws `InvalidInput` when set-up has not run for this home. */
export function readTools(home: string): Tools {
  const where = join(home, 'toolchain/tools.json');
  const tools = existsSync(where) ? toolsSchema.safeParse(JSON.parse(readFileSync(where, 'utf8'))) : undefined;
  if (!tools?.success)
    throw new InvalidInputError('the Temporal and NATS servers are not set up', { where, hint: 'npm run setup' });
  for (const { path } of Object.values(tools.data)) {
    if (!existsSync(path)) throw new InvalidInputError(`${path} is missing`, { where, hint: 'npm run setup' });
  }
  return tools.data;
}
