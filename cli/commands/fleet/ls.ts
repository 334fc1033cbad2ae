/** `petrel fleet ls`. */
import { fleetList } from '../../../api/fleet/list.ts';
import type { FleetList } from '../../../api/fleet/list.ts';
import { placeName } from '../../../core/fleet/types.ts';
import { showSpan } from '../../../core/schedules/duration.ts';
import { openLive } from '../../../api/runs/live-source.ts';
import type { CommandContext, CommandInput } from '../../command.ts';
import type { Printer } from '../../printer/printer.ts';
import { renderTable, widthFor } from '../../printer/table.ts';

export async function run(_input: CommandInput, context: CommandContext): Promise<undefined> {
  const live = await openLive(context.home);
  try {
    const list = await fleetList(context, live);
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
  const now = Date.now();
  const bought = renderTable(
    instances,
    [
      { head: 'instance', value: ({ id }) => id },
      { head: 'pool', value: ({ pool }) => pool },
      { head: 'state', value: ({ state }) => state },
      { head: 'type', value: ({ type }) => type, spare: 2 },
      { head: 'zone', value: ({ zone }) => zone, spare: 3 },
      { head: 'market', value: ({ market }) => (market === 'spot' ? 'spot' : 'on demand'), spare: 4 },
      { head: '$/h', value: ({ usdPerHour }) => usdPerHour.toFixed(4), right: true },
      { head: 'age', value: ({ launchedAt, endedAt }) => age(launchedAt, endedAt, now), right: true },
      { head: 'jobs', value: ({ jobs }) => jobs.length },
      { head: 'because', value: ({ because }) => because, shrink: true, spare: 1 },
    ],
    width,
  );
  const open = asked.map(
    ({ pool, place, count }) => `${pool}: ${count} ${placeName(place)} asked for, not answered yet`,
  );
  return [
    ...(instances.length > 0 ? [bought] : []),
    ...(open.length > 0 ? [open.join('\n')] : []),
    ...(machines.length > 0 ? [ofMachines] : []),
    ...(tokens.length > 0 ? [ofTokens] : []),
  ].join('\n\n');
}

const age = (from: string, to: string | undefined, now: number): string =>
  showSpan((to === undefined ? now : Date.parse(to)) - Date.parse(from));
