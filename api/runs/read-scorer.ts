/** The user's scorer module as it lies in its file. */
import { readFile } from 'node:fs/promises';
import { InvalidInputError } from '../../core/errors.ts';

/** `path`: absolute. Throws InvalidInputError. */
export function readScorer(path: string): Promise<Uint8Array> {
  return readFile(path).catch((cause: unknown) => {
    throw new InvalidInputError(`reward.custom_reward_function.path: cannot read ${path}`, { cause });
  });
}
