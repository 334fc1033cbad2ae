/** `petrel worker --join FILE`. */
import { readFileSync } from 'node:fs';
import { joinFleet } from '../../../api/index.ts';
import { InvalidInputError } from '../../../core/errors.ts';
import { untilToldToLeave } from '../../machine/until-told-to-leave.ts';
import type { CommandContext, CommandInput } from '../../command.ts';
import { integerOption, textOption } from '../../options.ts';

export async function run(input: CommandInput, context: CommandContext): Promise<undefined> {
  const where = textOption(input, 'join') ?? '';
  const [text, threads] = [readText(where), integerOption(input, 'threads', 1, 1_024)];
  const graceSeconds = integerOption(input, 'grace', 1, 86_400);
  await untilToldToLeave((signal) => joinFleet(context, { text, where, threads, graceSeconds, signal }));
  return undefined;
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (cause) {
    throw new InvalidInputError(`--join: expected a readable file, got ${path}`, {
      hint: 'petrel fleet token --pool NAME > FILE on the control machine makes one',
      cause,
    });
  }
}
