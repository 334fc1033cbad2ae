/** Keys of a store. */
import { InvalidInputError } from '../../core/errors.ts';

/** Keys are relative, with forward slashes and without `..`. Throws InvalidInputError for others. */
export function checkKey(key: string): string {
  if (key.startsWith('/') || key.split('/').includes('..')) {
    throw new InvalidInputError(`Not a store key: ${JSON.stringify(key)}`);
  }
  return key;
}
