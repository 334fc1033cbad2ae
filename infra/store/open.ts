/** Opens the store that a recipe names, and checks that it can fence. */
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { InvalidInputError, TerminalError } from '../../core/errors.ts';
import type { Store } from '../../core/ports/store.ts';
import { openFolderStore } from './folder.ts';
import type { WhenMissing } from './folder-root.ts';

/**
 * `where`: a path, `file:///…`, or `s3://bucket/prefix`. A missing folder is created, unless `refuse` is given: then
 * RetryableError `StoreGone`.
 */
export async function openStore(where: string, whenMissing: WhenMissing = 'make'): Promise<Store> {
  // loaded on demand, because the SDK loads slowly
  if (where.startsWith('s3://')) return (await import('./s3/store.ts')).openS3Store(where);
  if (where.startsWith('file://')) return openFolderStore(fileURLToPath(where), whenMissing);
  if (/^[a-z][a-z0-9+.-]*:/i.test(where)) {
    throw new InvalidInputError(`store: expected a folder or s3://bucket/prefix, got ${where}`, {
      hint: 'store: a folder, or s3://bucket/prefix',
    });
  }
  return openFolderStore(where, whenMissing);
}

/** The path of the folder, or the given text. */
export function storeUrl(where: string): string {
  if (where.startsWith('file://')) return pathToFileURL(resolve(fileURLToPath(where))).href;
  return /^[a-z][a-z0-9+.-]*:/i.test(where) ? where : pathToFileURL(resolve(where)).href;
}

/** Opens an existing store for reading; a missing folder is not created. Throws TerminalError `NotFound`. */
export async function openExistingStore(where: string): Promise<Store> {
  const folder = where.startsWith('file://') ? fileURLToPath(where) : where.startsWith('s3://') ? undefined : where;
  if (folder !== undefined && !existsSync(folder))
    throw new TerminalError('NotFound', `there is no store at ${where}`, {
      hint: 'name the folder that holds runs/, or s3://bucket/prefix',
    });
  return openStore(where, 'refuse');
}

/** Does what `openStore` does, with connections of its own until `close`. */
export async function openStoreApart(where: string): Promise<{ readonly store: Store; close(): void }> {
  if (!where.startsWith('s3://')) return { store: await openStore(where, 'refuse'), close: () => {} };
  const [{ openS3Store }, { connectS3 }] = await Promise.all([import('./s3/store.ts'), import('./s3/client.ts')]);
  const connection = await connectS3();
  return { store: await openS3Store(where, connection), close: () => connection.client.destroy() };
}
