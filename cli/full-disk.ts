/** What a command that fails says of a full disk. Other commands need not load this, nor the stack's clients. */
import { namingFullDisk, petrelHome } from '../api/index.ts';

/** The error to print: the one that names the full disk, for an error that only says that there is no room. */
export const errorOfFullDisk = (error: unknown, env: NodeJS.ProcessEnv): Promise<unknown> =>
  namingFullDisk(error, petrelHome(env));
