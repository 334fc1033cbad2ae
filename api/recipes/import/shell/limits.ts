/** Bounds of a script. A training script needs a small part of them; beyond them a file is refused. */
import { InvalidInputError } from '../../../../core/errors.ts';

export const LIMITS = {
  /** Characters of a script. */
  source: 1_000_000,
  /** Words and operators. */
  tokens: 200_000,
  /** Brackets, quotes and statements within each other. */
  depth: 60,
  /** Characters of one value. */
  value: 100_000,
  /** Characters that all expansions together make. */
  expanded: 4_000_000,
  /** Statements that are evaluated, those of functions each time. */
  statements: 50_000,
  /** Things that are reported as not read. */
  notes: 1_000,
} as const;

/** Throws InvalidInputError when `value` is over the limit. */
export function within(limit: keyof typeof LIMITS, value: number, line: number): void {
  if (value > LIMITS[limit])
    throw new InvalidInputError(`the script is too large to be read: more than ${LIMITS[limit]} (${WHAT[limit]})`, {
      where: `line ${line}`,
    });
}

const WHAT: Readonly<Record<keyof typeof LIMITS, string>> = {
  source: 'characters',
  tokens: 'words',
  depth: 'levels of nesting',
  value: 'characters in one value',
  expanded: 'characters in all values',
  statements: 'statements',
  notes: 'places that petrel does not understand',
};
