import { InvalidInputError } from '../../../core/errors.ts';
import type { CommandInput } from '../../command.ts';

/** The `[iteration]` after the run. Throws InvalidInputError. */
export function iterationWord(input: CommandInput): number | undefined {
  const text = input.words[1];
  if (text === undefined) return undefined;
  if (!/^\d+$/.test(text))
    throw new InvalidInputError(`iteration: expected a number of an iteration, got ${JSON.stringify(text)}`);
  return Number(text);
}
