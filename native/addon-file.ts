/** Finds the addon: in the build folder of a checkout, or in PETREL_HOME for a package that npm installed. */
import { existsSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { packageRoot } from './package-root.ts';

/**
 * The file that PETREL_NATIVE names; in a checkout `build/native/petrel.node`; in an installed package the file that
 * setup/installed.mjs made below PETREL_HOME/engine.
 */
export function addonFile(): string {
  const named = process.env['PETREL_NATIVE'];
  if (named !== undefined) return named;
  const root = packageRoot();
  const built = join(root, 'build', 'native', 'petrel.node');
  if (existsSync(join(root, 'tsconfig.json'))) return built;
  const id = readFileSync(`${built}.sha256`, 'utf8').slice(0, 16);
  return join(process.env['PETREL_HOME'] || join(homedir(), '.petrel'), 'engine', id, 'petrel.node');
}
