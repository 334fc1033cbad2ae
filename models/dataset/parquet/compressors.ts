/** Decompresses pages: by Node's own libraries where it has them, which take a tenth of the time. */
import zlib from 'node:zlib';
import type { Compressors } from 'hyparquet';
import { compressors as portable } from 'hyparquet-compressors';

type Decompress = (bytes: Uint8Array, options: { readonly maxOutputLength: number }) => Uint8Array;

/** `outputLength` of a page bounds what damaged bytes make: an empty page has at least one. */
const byNode = (decompress: Decompress) => (bytes: Uint8Array, outputLength: number) =>
  decompress(bytes, { maxOutputLength: Math.max(1, outputLength) });

/** Node has zstd from version 22.15 on. */
const { zstdDecompressSync } = zlib as { readonly zstdDecompressSync?: Decompress };

export const compressors: Compressors = {
  ...portable,
  GZIP: byNode(zlib.gunzipSync),
  BROTLI: byNode(zlib.brotliDecompressSync),
  ...(zstdDecompressSync !== undefined && { ZSTD: byNode(zstdDecompressSync) }),
};
