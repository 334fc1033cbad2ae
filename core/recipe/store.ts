import { key, text } from './key.ts';

/** `store`: where the run lives. Syntax only; which kinds are built stands in `seams.ts`. */
export const storeKey = key(text.nullable(), null, {
  doc: 'A folder or s3://bucket/prefix; null: the store of the local stack.',
  change: 'fixed',
  pointsTo: 'file',
});

export type StoreLocation =
  | { readonly type: 'default' }
  | { readonly type: 'folder'; readonly path: string }
  | { readonly type: 's3'; readonly bucket: string; readonly prefix: string };

/** What a `store` value points to. */
export function parseStoreLocation(store: string | null): StoreLocation {
  if (store === null) return { type: 'default' };
  const s3 = /^s3:\/\/([^/]+)(?:\/(.*))?$/.exec(store);
  if (s3 === null) return { type: 'folder', path: store };
  return { type: 's3', bucket: s3[1] ?? '', prefix: (s3[2] ?? '').replace(/\/+$/, '') };
}
