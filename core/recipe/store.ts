import { key, text } from './key.ts';

/** `store`: where the run is stored. */
export const storeKey = key(text.nullable(), null, {
  doc: 'A folder or s3://bucket/prefix; null: the store of the local stack.',
  change: 'fixed',
  pointsTo: 'file',
});
