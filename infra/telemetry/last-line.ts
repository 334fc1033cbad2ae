/** The end of a file of lines that only grows. Its length must not matter, because the end is read once a second. */
import { open } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';

const pieceBytes = 64 * 1024;
const newline = 0x0a;

/**
 * The last whole line, without its newline; undefined when there is none or no file. What a killed process left of a
 * further line is cut off.
 */
export async function lastLine(path: string): Promise<string | undefined> {
  const file = await open(path, 'r+').catch(undefinedIfAbsent);
  if (file === undefined) return undefined;
  try {
    const { size } = await file.stat();
    const end = await afterNewline(file, size);
    if (end < size) await file.truncate(end);
    if (end === 0) return undefined;
    const start = await afterNewline(file, end - 1);
    return (await read(file, start, end - 1)).toString('utf8');
  } finally {
    await file.close();
  }
}

/** Offset after the last newline before `end`; 0 when there is none. */
async function afterNewline(file: FileHandle, end: number): Promise<number> {
  for (let to = end; to > 0; to = Math.max(0, to - pieceBytes)) {
    const from = Math.max(0, to - pieceBytes);
    const found = (await read(file, from, to)).lastIndexOf(newline);
    if (found >= 0) return from + found + 1;
  }
  return 0;
}

async function read(file: FileHandle, from: number, to: number): Promise<Buffer> {
  const bytes = Buffer.alloc(to - from);
  const { bytesRead } = await file.read(bytes, 0, bytes.length, from);
  return bytes.subarray(0, bytesRead);
}

function undefinedIfAbsent(error: unknown): undefined {
  if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
  throw error;
}
