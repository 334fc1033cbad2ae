/** `petrel fleet revoke`. */
import { revokeFromFleet } from '../../../api/index.ts';
import type { CommandContext, CommandInput } from '../../command.ts';

export async function run({ words: [what = ''] }: CommandInput, context: CommandContext): Promise<undefined> {
  const revoked = await revokeFromFleet(context, what);
  const names = [...revoked.machines, ...revoked.tokens];
  context.printer.data(revoked, () => `revoked ${names.join(', ')}`);
  return undefined;
}
