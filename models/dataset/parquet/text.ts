/** Text of Parquet's bytes. */
import { isUtf8 } from 'node:buffer';

/** Stands for bytes that are no UTF-8. Whoever puts the row together names it; the page's reader does not know it. */
export const notText = Symbol('bytes that are not UTF-8');

const replacement = '\ufffd';
const byteOrderMark = 0xfeff;

/**
 * Decodes as TextDecoder does, a leading byte order mark left out. `strict`: of a column that its schema calls text;
 * other bytes may be anything. Buffer's decoder takes half the time for short texts.
 */
export function textParser(strict: boolean): (bytes: Uint8Array | undefined) => unknown {
  return (bytes) => {
    if (bytes === undefined) return undefined;
    const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8');
    if (strict && text.includes(replacement) && !isUtf8(bytes)) return notText;
    return text.charCodeAt(0) === byteOrderMark ? text.slice(1) : text;
  };
}
