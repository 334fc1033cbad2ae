/**
 * What a user types to start petrel here: printed commands work when they are pasted, also where `petrel` is not on the
 * PATH.
 */
import { existsSync, realpathSync } from 'node:fs';
import { delimiter, join, relative, resolve } from 'node:path';

/** `petrel`, `npx petrel`, or `node` with the path of the script that runs. */
export function ownCommand(script: string, env: NodeJS.ProcessEnv, cwd: string): string {
  const own = realpathSync(script);
  const found = (env['PATH'] ?? '').split(delimiter).map((folder) => join(folder || '.', 'petrel'));
  const onPath = found.find((path) => existsSync(path));
  if (onPath !== undefined && realpathSync(onPath) === own)
    return env['npm_command'] === 'exec' && onPath.includes('node_modules') ? 'npx petrel' : 'petrel';
  const absolute = resolve(cwd, script);
  const way = relative(cwd, absolute);
  return `node ${quoted(way.startsWith('..') ? absolute : way)}`;
}

const quoted = (path: string): string => (/^[\w./-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`);

/** The text with each `petrel <command>` as it can be typed. `names`: first words of the commands. */
export function pasteable(text: string, command: string, names: ReadonlySet<string>): string {
  if (command === 'petrel') return text;
  return text.replace(/(?<![\w/.-])petrel (?=([a-z-]+))/g, (all, name: string) =>
    names.has(name) ? `${command} ` : all,
  );
}
