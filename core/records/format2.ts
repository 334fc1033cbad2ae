/**
 * Records of formats 1 and 2, read as format 3. Format 2 knew one engine, whose state always had the same three parts.
 * FORMAT.md in this folder lists the differences.
 */
import { batchOf1, checkpointOf1, originOf1, publicationOf1, resultOf1, termOf1, updateOf1 } from './format1.ts';
import { partsOf } from './state-parts.ts';

type Fields = Readonly<Record<string, unknown>>;

const isRecord = (stored: unknown): stored is Fields => typeof stored === 'object' && stored !== null;

/** Parts of other formats, and everything that is no record, stay as they are: the schema refuses them. */
const fromFormat2 = (upgradeOf1: (stored: unknown) => unknown) => (stored: unknown) => {
  const record = upgradeOf1(stored);
  return isRecord(record) && record['format'] === 2 ? { ...record, format: 3 } : record;
};

export const originOf2 = fromFormat2(originOf1);
export const termOf2 = fromFormat2(termOf1);
export const batchOf2 = fromFormat2(batchOf1);
export const updateOf2 = fromFormat2(updateOf1);
export const checkpointOf2 = fromFormat2(checkpointOf1);
export const publicationOf2 = fromFormat2(publicationOf1);
export const resultOf2 = fromFormat2(resultOf1);

/** A numeric profile from the time of one engine: `isa` was the device, and `engine` the build. */
export function profileOf2(stored: unknown): unknown {
  if (!isRecord(stored) || !('isa' in stored)) return stored;
  const { isa, engine, ...rest } = stored;
  return { ...rest, engine: 'native', device: isa, build: engine };
}

/** A component's part of a checkpoint from the time of one engine: it had all weights and the moments of AdamW. */
export function componentOf2(stored: unknown): unknown {
  if (!isRecord(stored) || 'parts' in stored || !Array.isArray(stored['parameters'])) return stored;
  const sizes = (stored['parameters'] as readonly { readonly shape?: readonly number[] }[]).map(({ shape = [] }) =>
    shape.reduce((size, length) => size * length, 1),
  );
  return { ...stored, parts: partsOf(sizes.reduce((sum, size) => sum + size, 0)) };
}
