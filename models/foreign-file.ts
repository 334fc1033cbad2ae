/** A model's file that is something else: a pointer that Git LFS left, a page of HTML that a proxy sent. */
import { open } from 'node:fs/promises';
import { dirname } from 'node:path';
import { InvalidInputError } from '../core/errors.ts';
import { fileKind, quoted } from './file-kind.ts';

/** Enough for every kind's first bytes. */
const firstBytes = 4096;

/** The command that writes PyTorch's own files as safetensors. */
export const saveAsSafetensors = (folder: string): string =>
  `python3 -c "import sys; from transformers import AutoModelForCausalLM as M; M.from_pretrained(sys.argv[1]).save_pretrained(sys.argv[1])" ${quoted(folder)}`;

/**
 * The error that names what a file is in place of `expected`; undefined when its first bytes say nothing, or it cannot
 * be opened. For a file that has turned out to be damaged.
 */
export async function foreignFile(path: string, expected: string): Promise<InvalidInputError | undefined> {
  const kind = fileKind(await headOf(path));
  if (kind.type === 'rows' || (kind.type === 'other' && kind.holds === 'weights')) return undefined;
  if (kind.type === 'empty')
    return new InvalidInputError(`${path}: expected ${expected}; the file is empty`, {
      where: path,
      hint: 'get the file again',
    });
  const hint = kind.holds === 'PyTorch' ? saveAsSafetensors(dirname(path)) : kind.advice(path);
  return new InvalidInputError(`${path}: expected ${expected}; this is ${kind.name}`, { where: path, hint });
}

async function headOf(path: string): Promise<Uint8Array> {
  const file = await open(path, 'r').catch(() => undefined);
  if (file === undefined) return new Uint8Array([0x7b]); // it says nothing, as the start of JSON
  try {
    const { buffer, bytesRead } = await file.read(new Uint8Array(firstBytes), 0, firstBytes, 0);
    return buffer.subarray(0, bytesRead);
  } finally {
    await file.close();
  }
}
