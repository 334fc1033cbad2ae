/** `petrel fleet token`. */
import { fleetToken } from '../../../api/fleet/token.ts';
import { parseDuration } from '../../../core/schedules/duration.ts';
import type { CommandContext, CommandInput } from '../../command.ts';
import { textOption } from '../../options.ts';

export async function run(input: CommandInput, context: CommandContext): Promise<undefined> {
  const file = await fleetToken(context, {
    pool: textOption(input, 'pool') ?? '',
    roles: (textOption(input, 'roles') ?? '').split(','),
    ttlMs: parseDuration(textOption(input, 'ttl') ?? '', '--ttl'),
    store: textOption(input, 'store'),
  });
  context.printer.data(file, () => JSON.stringify(file, null, 2));
  context.printer.notice(`valid until ${file.expires}; on the other machine: petrel worker --join FILE`);
  return undefined;
}
