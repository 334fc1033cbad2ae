/** The text of a scorer's error, with the place in the user's module: `RangeError: out of ideas (scorer.ts:12:9)`. */
import { spawnSync } from 'node:child_process';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { PetrelError } from '../../core/errors.ts';

/** `module`: path of the user's module, undefined for a built-in scorer. */
export function errorText(error: unknown, module: string | undefined): string {
  if (!(error instanceof Error)) return String(error);
  if (error instanceof PetrelError) return wordsOf(error);
  const place = error instanceof SyntaxError ? placeOfSyntaxError(error, module) : placeOf(error, module);
  return `${error.name}: ${error.message}${place === undefined ? '' : ` (${place})`}`;
}

/** An error of a built-in scorer says by itself which row and what to do. */
function wordsOf({ message, where, hint }: PetrelError): string {
  return `${message}${where === undefined ? '' : ` (${where})`}${hint === undefined ? '' : `: ${hint}`}`;
}

/** The innermost line of the user's module, else of any code. */
function placeOf(error: Error, module: string | undefined): string | undefined {
  const frames = (error.stack ?? '').split('\n').flatMap((line) => /([^\s(]+:\d+:\d+)\)?$/.exec(line)?.[1] ?? []);
  const own = module === undefined ? undefined : frames.find((frame) => pathIn(frame).startsWith(`${module}:`));
  const found = own ?? frames[0];
  return found === undefined ? undefined : pathIn(found);
}

function pathIn(frame: string): string {
  const [, url, position] = /^(file:\/\/.*?)(:\d+:\d+)$/.exec(frame) ?? [];
  return url === undefined || position === undefined ? frame : fileURLToPath(url) + position;
}

/** An import error describes a syntax error without its place. Only a check of the file shows the place. */
function placeOfSyntaxError(error: SyntaxError, module: string | undefined): string | undefined {
  // strip-types-hooks.mjs adds the place
  if (module === undefined || /:\d+:\d+\)$/.test(error.message)) return undefined;
  const { stderr } = spawnSync(process.execPath, ['--check', module], { encoding: 'utf8' });
  const [, path, line, marker] = /^(.+):(\d+)\n.*\n(\s*)\^/m.exec(stderr) ?? [];
  if (path === undefined || line === undefined || marker === undefined) return placeOf(error, module);
  return `${path.replace(pathToFileURL(module).href, module)}:${line}:${marker.length + 1}`;
}
