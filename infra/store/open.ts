/** From a recipe's `store` to a store that fences. */
import { fileURLToPath } from 'node:url';
import { resolve } from 'node:path';
import { InvalidInputError } from '../../core/errors.ts';
import type { Store } from '../../core/ports.ts';
import { openFolderStore } from './folder.ts';

/** `where`: a path, `file:///…`, or `s3://bucket/prefix` (not built yet). */
export async function openStore(where: string): Promise<Store> {
  if (where.startsWith('s3://')) {
    throw new InvalidInputError(`store: ${where}: the S3 store is not built yet`, {
      hint: 'Use a folder: store: ./runs',
    });
  }
  if (where.startsWith('file:')) return openFolderStore(fileURLToPath(where));
  return openFolderStore(resolve(where));
}
