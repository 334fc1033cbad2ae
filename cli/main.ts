/** The command line: words in, exit code out. */
import { readFileSync } from 'node:fs';
import { namingFullDisk } from '../api/stack.ts';
import { COMMANDS, NOUNS } from './commands.ts';
import { homeOf } from '../api/home.ts';
import { commandContext } from './context.ts';
import { EXIT, exitCodeOf } from './exit-codes.ts';
import { createPrinter } from './printer/printer.ts';
import { ownCommand, pasteableStream } from './own-command.ts';
import { runProgram } from './program.ts';

/** Sets `process.exitCode`; never throws. */
export async function main(words: readonly string[]): Promise<void> {
  endQuietlyOnClosedPipe();
  const printer = (json: boolean) => createPrinter({ json, ...streamsFor(words, json), env: process.env });
  try {
    process.exitCode = await runProgram(COMMANDS, words, {
      version: packageVersion(),
      nouns: NOUNS,
      context: (json) => commandContext(printer(json), process.env, process.cwd()),
      stdout: process.stdout,
    });
  } catch (error) {
    const told = await namingFullDisk(error, homeOf(process.env));
    printer(words.includes('--json')).error(told);
    process.exitCode = exitCodeOf(told);
  }
}

/** Commands are printed as they can be typed here. JSON is for programs; logs and samples are not petrel's own words. */
function streamsFor(words: readonly string[], json: boolean) {
  const { stdout, stderr } = process;
  const script = process.argv[1];
  if (json || script === undefined) return { stdout, stderr };
  const command = ownCommand(script, process.env, process.cwd());
  const names = new Set(COMMANDS.map(({ name }) => name.split(' ')[0] ?? name));
  const isQuoting = words[0] === 'logs' || words[0] === 'samples';
  return {
    stdout: isQuoting ? stdout : pasteableStream(stdout, command, names),
    stderr: pasteableStream(stderr, command, names),
  };
}

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
