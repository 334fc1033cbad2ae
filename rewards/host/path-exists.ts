import { stat } from 'node:fs/promises';

/** Is there a file or folder? */
export async function pathExists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}
