/** The error of a folder for weights that this worker cannot write. */
import { PauseError, PetrelError } from '../../../../core/errors.ts';

const denied: ReadonlySet<unknown> = new Set(['EACCES', 'EPERM', 'EROFS', 'ENOTDIR']);

/** The error of a person's own where the system denies what was to be done in `folder`; else the error itself. */
export function asUnwritable(folder: string, error: unknown): unknown {
  const { code, path, dest } = error as NodeJS.ErrnoException & { readonly dest?: string };
  const isHere = [path, dest].some((one) => one !== undefined && (one.startsWith(folder) || folder.startsWith(one)));
  if (error instanceof PetrelError || !denied.has(code) || !isHere) return error;
  return new PauseError('WrongServer', `the folder for the server’s weights cannot be written: ${folder} (${code})`, {
    where: 'rollout.weights_dir',
    hint: 'set rollout.weights_dir to a folder that the workers can write and the server can read',
    cause: error,
  });
}
