/** A file that survives a power cut when this returns: written, synced, and its folder synced. */
import { open } from 'node:fs/promises';
import { join } from 'node:path';

const bytes = new Uint8Array(1024);

export async function durableCreate(folder: string, name: string): Promise<void> {
  const file = await open(join(folder, name), 'wx');
  try {
    await file.write(bytes);
    await file.sync();
  } finally {
    await file.close();
  }
  const parent = await open(folder, 'r');
  try {
    await parent.sync();
  } finally {
    await parent.close();
  }
}
