/** `petrel fleet show`: the fleet as it was applied. */
import { fleetReport, fleetYaml } from '../../../api/index.ts';
import type { CommandContext, CommandInput } from '../../command.ts';

export async function run(_input: CommandInput, context: CommandContext): Promise<undefined> {
  const { wanted } = await fleetReport(context, []);
  context.printer.data(wanted, () => [`# revision ${wanted.n}, ${wanted.at}`, fleetYaml(wanted)].join('\n'));
  return undefined;
}
