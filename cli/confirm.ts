/** Asking before something is lost. */
import { createInterface } from 'node:readline/promises';
import { InvalidInputError } from '../core/errors.ts';
import type { CommandContext, CommandInput } from './command.ts';
import { flag } from './options.ts';

/** True with -y, or when the answer is yes. Throws InvalidInputError where nobody can be asked. */
export async function confirmed(question: string, input: CommandInput, { printer }: CommandContext): Promise<boolean> {
  if (flag(input, 'yes')) return true;
  if (!printer.stderr.isTty || process.stdin.isTTY !== true) {
    throw new InvalidInputError(`nobody can be asked here: ${question}`, { hint: 'add --yes' });
  }
  const asking = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return /^y(es)?$/i.test((await asking.question(`${question} [y/N] `)).trim());
  } finally {
    asking.close();
  }
}
