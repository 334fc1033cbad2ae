import { TerminalError } from '../../core/errors.ts';

/** Stands in for a command's module until it is written. */
export async function run(): Promise<undefined> {
  throw new TerminalError('NotBuilt', 'this command is not built yet');
}
