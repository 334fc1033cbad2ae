/** `petrel fleet policy`. */
import { fleetPolicy } from '../../../api/fleet/policy.ts';
import type { CommandContext, CommandInput } from '../../command.ts';
import { textOption } from '../../options.ts';

export async function run(input: CommandInput, context: CommandContext): Promise<undefined> {
  const policy = fleetPolicy(context, { store: textOption(input, 'store'), principal: textOption(input, 'principal') });
  context.printer.data(policy, () => JSON.stringify(policy, null, 2));
  return undefined;
}
