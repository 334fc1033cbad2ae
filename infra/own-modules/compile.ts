/**
 * The JavaScript of a user's own module: without types, and with a map to the lines of its source, which the map
 * contains. A run stores this and not the file, so that every machine runs the same code. Only main threads compile:
 * swc's library cannot be loaded again in a process after a thread that has loaded it has ended.
 */
import { OwnModuleError } from './own-module.ts';

/** @throws OwnModuleError with the place of an error of syntax. */
export async function compileOwnModule(source: Uint8Array, fileName: string): Promise<Uint8Array> {
  const { transform } = await import('@swc/core');
  const isTypeScript = /\.m?ts$/.test(fileName);
  try {
    const { code } = await transform(new TextDecoder().decode(source), {
      filename: fileName,
      swcrc: false,
      configFile: false,
      isModule: true,
      sourceMaps: 'inline',
      jsc: { target: 'es2022', parser: isTypeScript ? { syntax: 'typescript' } : { syntax: 'ecmascript' } },
    });
    return new TextEncoder().encode(code);
  } catch (error) {
    throw syntaxError(error instanceof Error ? error.message : String(error), fileName);
  }
}

/** swc shows the place in a picture: rewards/host/strip-types-hooks.mjs. */
function syntaxError(message: string, fileName: string): OwnModuleError {
  const plain = message.replace(new RegExp(`${String.fromCharCode(27)}\\[[\\d;]*m`, 'g'), '');
  const what = /^\s*(?:x|×)\s+(.+)/.exec(plain)?.[1] ?? plain.split('\n')[0] ?? '';
  const shown = /^\s*(\d+) [|│](.*)\n\s*[:·](.*?)[\^┬─]/m.exec(plain);
  const place = shown === null ? '' : `:${shown[1]}:${shown[3]?.length ?? 0}`;
  return new OwnModuleError(`./${fileName}: SyntaxError: ${what}`, { where: `./${fileName}${place}` });
}
