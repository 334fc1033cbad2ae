/** The user's scorer module, as its file contains it. */
import { readFile } from 'node:fs/promises';
import { InvalidInputError } from '../../core/errors.ts';

/** `path`: absolute. Throws InvalidInputError. */
export function readScorer(path: string): Promise<Uint8Array> {
  return readFile(path).catch((cause: unknown) => {
    throw new InvalidInputError(`reward.custom_reward_function.path: cannot read ${path}`, {
      hint: "a path in a recipe is relative to the recipe's folder, one on the command line to the folder that you are in",
      cause,
    });
  });
}
