/** Asking before something is lost. */
import { createInterface } from 'node:readline/promises';
import { InvalidInputError } from '../core/errors.ts';
import type { CommandContext, CommandInput } from './command.ts';
import { flag } from './options.ts';
import { printable } from './printer/printable.ts';

/** True with the option that says yes beforehand, or when the answer is yes. Throws InvalidInputError without a terminal. */
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
  const asking = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return /^y(es)?$/i.test((await asking.question(printable(`${question} [y/N] `))).trim());
  } finally {
    asking.close();
  }
}
