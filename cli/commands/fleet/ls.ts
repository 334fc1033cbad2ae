/** `petrel fleet ls`. */
import { listFleet, openLiveSource } from '../../../api/index.ts';
import type { FleetList } from '../../../api/index.ts';
import type { CommandContext, CommandInput } from '../../command.ts';
import type { Printer } from '../../printer/printer.ts';
import { renderTable, widthFor } from '../../printer/table.ts';
import { instanceTexts, rateText } from '../../runs/fleet-text.ts';

export async function run(_input: CommandInput, context: CommandContext): Promise<undefined> {
  const live = await openLiveSource(context.home);
  try {
    const list = await listFleet(context, live);
    context.printer.data(list, () => listText(list, context.printer));
  } finally {
    await live.close();
  }
  return undefined;
}

function listText({ instances = [], asked = [], machines, tokens }: FleetList, printer: Printer): string {
  if (instances.length + asked.length + machines.length + tokens.length === 0)
    return 'no machine has joined, and there is no token\nnext: petrel fleet token --pool NAME --program FILE';
  const width = widthFor(printer.stdout);
  const ofMachines = renderTable(
    machines,
    [
      { head: 'machine', value: ({ instance }) => instance },
      { head: 'pool', value: ({ pool }) => pool },
      { head: 'state', value: ({ state }) => state },
      { head: 'host', value: ({ host }) => host, shrink: true },
      { head: 'jobs', value: ({ jobs }) => jobs },
      { head: 'tokens/s', value: rateText, right: true, spare: 1 },
      { head: 'joined', value: ({ joinedAt }) => joinedAt.slice(0, 19).replace('T', ' ') },
    ],
    width,
  );
  const ofTokens = renderTable(
    tokens,
    [
      { head: 'token', value: ({ id }) => id },
      { head: 'pool', value: ({ pool }) => pool },
      { head: 'roles', value: ({ roles }) => roles.join(' ') },
      { head: 'state', value: ({ revoked }) => (revoked ? 'revoked' : 'valid') },
      { head: 'until', value: ({ until }) => until.slice(0, 19).replace('T', ' ') },
    ],
    width,
  );
  return [
    ...instanceTexts({ instances, asked }, printer),
    ...(machines.length > 0 ? [ofMachines] : []),
    ...(tokens.length > 0 ? [ofTokens] : []),
  ].join('\n\n');
}
