import { livingFleet, stopStack } from '../../api/index.ts';
import type { CommandContext, CommandInput } from '../command.ts';

/** `petrel down`. Nothing that runs is no error. */
export async function run(_input: CommandInput, context: CommandContext): Promise<undefined> {
  const { printer, home } = context;
  const result = await stopStack(home);
  printer.data(result, () =>
    result.stopped.length === 0
      ? 'nothing was running'
      : `stopped ${result.stopped.join(', ')}; petrel up starts them again, and runs continue`,
  );
  const bought = (await livingFleet(context, []))?.instances.length ?? 0;
  if (bought > 0)
    printer.notice(
      `${bought} bought instance${bought === 1 ? '' : 's'} still run and cost money; each ends itself when it could not reach the stack for the time lonely of its pool. petrel up takes them back.`,
    );
  return undefined;
}
