/** Asks the user to confirm before something is lost. */
import { createInterface } from 'node:readline/promises';
import type { ReadLineOptions } from 'node:readline/promises';
import { InvalidInputError } from '../core/errors.ts';
import type { CommandContext, CommandInput } from './command.ts';
import { flag } from './options.ts';
import { printable } from './printer/printable.ts';
import { wrapLongLines } from './printer/wrap.ts';

/** True when the option was given or the user answers yes. Throws InvalidInputError without a terminal. */
export async function confirmed(
  question: string,
  input: CommandInput,
  { printer }: CommandContext,
  option: 'yes' | 'accept' = 'yes',
): Promise<boolean> {
  if (flag(input, option)) return true;
  if (!printer.stderr.isTty || process.stdin.isTTY !== true) {
    throw new InvalidInputError(`${question} This is not a terminal, so the answer must be on the command line`, {
      hint: `confirm with --${option}`,
    });
  }
  const text = wrapLongLines(`${question} [y/N]`, printer.stderr);
  return saysYes(`${printer.stderr.typed(text)} `, { input: process.stdin, output: process.stderr });
}

/** Ctrl-C means no. */
export async function saysYes(question: string, streams: ReadLineOptions): Promise<boolean> {
  const asking = createInterface(streams);
  try {
    return /^y(es)?$/i.test((await asking.question(printable(question))).trim());
  } catch (error) {
    if (!(error instanceof Error && error.name === 'AbortError')) throw error;
    streams.output?.write('\n');
    return false;
  } finally {
    asking.close();
  }
}
