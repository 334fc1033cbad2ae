/** `petrel fleet explain`: why there are as many instances as there are. */
import { fleetReport } from '../../../api/index.ts';
import type { FleetReport } from '../../../api/index.ts';
import { placeName } from '../../../core/fleet/types.ts';
import type { CommandContext, CommandInput } from '../../command.ts';
import { renderTable, widthFor } from '../../printer/table.ts';
import type { Printer } from '../../printer/printer.ts';

export async function run(_input: CommandInput, context: CommandContext): Promise<undefined> {
  const report = await fleetReport(context, []);
  context.printer.data(report.plan ?? null, () => text(report, context.printer));
  return undefined;
}

function text({ plan, asked }: FleetReport, printer: Printer): string {
  if (plan === undefined) return 'nothing is planned yet: petrel up starts the control process that does';
  const reasons = plan.reasons.map(({ pool, count, because }) => `${pool}: ${count}, because ${because}`);
  const stopped = plan.stopped.map(({ pool, because }) => `${pool} stands still until its settings change: ${because}`);
  const open = asked.map(
    ({ pool, place, count }) => `${pool}: ${count} ${placeName(place)} asked for, not answered yet`,
  );
  const prices = renderTable(
    [...plan.prices].sort((a, b) => a.usdPerHour - b.usdPerHour),
    [
      { head: 'type', value: ({ type }) => type },
      { head: 'zone', value: ({ zone }) => zone },
      { head: 'spot, $/h', value: ({ usdPerHour }) => usdPerHour.toFixed(4), right: true },
    ],
    widthFor(printer.stdout),
  );
  return [
    `planned at ${plan.at.slice(0, 19).replace('T', ' ')}`,
    ...[...reasons, ...stopped, ...plan.notes, ...open],
    ...(plan.prices.length > 0 ? ['', prices] : []),
  ].join('\n');
}
