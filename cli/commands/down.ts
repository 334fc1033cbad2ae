import { stopStack } from '../../api/stack.ts';
import type { CommandContext, CommandInput } from '../command.ts';

/** `petrel down`. Nothing that runs is no error. */
export async function run(_input: CommandInput, { printer, home }: CommandContext): Promise<undefined> {
  const result = await stopStack(home);
  printer.data(result, () =>
    result.stopped.length === 0
      ? 'nothing was running'
      : `stopped ${result.stopped.join(', ')}; petrel up starts them again, and runs continue`,
  );
  return undefined;
}
