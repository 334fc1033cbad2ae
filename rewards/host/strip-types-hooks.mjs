/**
 * Module hooks: a `.ts` file is its JavaScript with the types removed (by swc, which Temporal's worker brings along).
 */
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { transform } from '@swc/core';

export async function load(url, context, nextLoad) {
  if (!url.startsWith('file:') || !/\.m?ts$/.test(new URL(url).pathname)) return nextLoad(url, context);
  const filename = fileURLToPath(url);
  const source = await readFile(filename, 'utf8');
  return { format: 'module', source: await withoutTypes(source, filename), shortCircuit: true };
}

async function withoutTypes(source, filename) {
  try {
    const { code } = await transform(source, {
      filename,
      swcrc: false,
      isModule: true,
      sourceMaps: 'inline',
      jsc: { target: 'es2022', parser: { syntax: 'typescript' } },
    });
    return code;
  } catch (error) {
    throw syntaxError(error, filename);
  }
}

/**
 * swc gives a picture of the place and a native stack, with colours at times:
 *
 *     x Expression expected
 *      ,-[/path/scorer.ts:3:1]
 *    3 |   return a +;
 *      :             ^
 */
function syntaxError(error, filename) {
  const text = String(error.message).replace(/\u001b\[[\d;]*m/g, '');
  const what = /^\s*(?:x|×)\s+(.+)/.exec(text)?.[1];
  const shown = /^\s*(\d+) [|│](.*)\n\s*[:·](.*?)[\^┬─]/m.exec(text);
  if (what === undefined || shown === null) return error;
  const [, line, , before] = shown;
  return new SyntaxError(`${what} (${filename}:${line}:${before.length})`);
}
