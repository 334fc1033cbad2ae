/** The command line: words in, exit code out. */
import { readFileSync } from 'node:fs';
import { COMMANDS, NOUNS } from './commands.ts';
import { commandContext } from './context.ts';
import { EXIT, exitCodeOf } from './exit-codes.ts';
import { createPrinter } from './printer/printer.ts';
import { ownCommand, pasteable } from './own-command.ts';
import { runProgram } from './program.ts';

/** Sets `process.exitCode`; never throws. */
export async function main(words: readonly string[]): Promise<void> {
  endQuietlyOnClosedPipe();
  const { stdout, stderr, env } = process;
  const typed = typedHere();
  const printer = (json: boolean) => createPrinter({ json, stdout, stderr, env, typed, quotes: isQuoting(words) });
  try {
    process.exitCode = await runProgram(COMMANDS, words, {
      version: packageVersion(),
      nouns: NOUNS,
      context: (json) => commandContext(printer(json), env, process.cwd()),
      stdout: { write: (help) => stdout.write(typed(help)) },
    });
  } catch (error) {
    // Loaded only here: a short command does not need the clients of the stack's servers.
    const { errorOfFullDisk } = await import('./full-disk.ts');
    const told = await errorOfFullDisk(error, env);
    printer(words.includes('--json')).error(told);
    process.exitCode = exitCodeOf(told);
  }
}

/** Puts commands as they can be typed here. */
function typedHere(): (text: string) => string {
  const script = process.argv[1];
  if (script === undefined) return (text) => text;
  const command = ownCommand(script, process.env, process.cwd());
  const names = new Set(COMMANDS.map(({ name }) => name.split(' ')[0] ?? name));
  return (text) => pasteable(text, command, names);
}

/**
 * Logs and samples are not petrel's own text; the reference of recipe keys is a page of the docs, and an imported
 * recipe a file.
 */
const isQuoting = ([first = '', second = '', ...words]: readonly string[]): boolean =>
  ['logs', 'samples', 'reference'].includes(first) ||
  (first === 'recipe' && second === 'reference') ||
  (first === 'recipe' && second === 'import' && !words.some((word) => /^--(?:out|dry-run)\b/.test(word)));

/** `petrel ls | head` is no error. */
function endQuietlyOnClosedPipe(): void {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    process.exit(error.code === 'EPIPE' ? EXIT.ok : EXIT.internal);
  });
}

function packageVersion(): string {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  return (JSON.parse(text) as { readonly version: string }).version;
}
