/** Roles as a person writes them. */
import { InvalidInputError } from '../../core/errors.ts';
import { roles as knownRoles } from '../../core/roles.ts';
import type { Role } from '../../core/roles.ts';
import { usualRoles } from '../../core/wire/join.ts';

/** Throws InvalidInputError for a word that is no role. */
export function givenRoles(words: readonly string[]): Role[] {
  return words.map((word) => {
    const found = knownRoles.find((name) => name === word);
    if (found !== undefined) return found;
    throw new InvalidInputError(`--roles: expected some of ${knownRoles.join(', ')}, got "${word}"`, {
      hint: `--roles ${usualRoles.join()}`,
    });
  });
}
