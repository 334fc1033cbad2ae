import { InvalidInputError } from '../errors.ts';

/** The error of an override on the command line. `at` is the position in the argument `source`; a caret shows it. */
export function overrideError(source: string, at: number, message: string): InvalidInputError {
  return new InvalidInputError(`bad override: ${message}\n  ${source}\n  ${' '.repeat(at)}^`, {
    where: `override ${source}`,
    hint: 'write key=value, for instance actor.optim.lr=1e-5; lists as [a,b]; texts with spaces in quotes',
  });
}
