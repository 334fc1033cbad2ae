import { petrelHome } from '../api/index.ts';
import type { CommandContext } from './command.ts';
import type { Printer } from './printer/printer.ts';

/** A command's context. The home is made when it is first asked for: `petrel recipe explain` needs none. */
export function commandContext(printer: Printer, env: NodeJS.ProcessEnv, cwd: string): CommandContext {
  return {
    printer,
    env,
    cwd,
    get home() {
      return petrelHome(env);
    },
    notice: printer.notice,
  };
}
