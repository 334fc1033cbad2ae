/** Bought instances, for people. */
import type { FleetInstance, FleetReport } from '../../api/index.ts';
import { placeName } from '../../core/fleet/types.ts';
import { showCount } from '../../core/quantities.ts';
import { showSpan } from '../../core/schedules/duration.ts';
import type { Printer } from '../printer/printer.ts';
import { renderTable, widthFor } from '../printer/table.ts';

export interface ShownFleet extends Pick<FleetReport, 'asked'> {
  readonly instances: readonly FleetInstance[];
}

/** A table, and what is asked for; neither where there is nothing. */
export function instanceTexts({ instances, asked }: ShownFleet, printer: Printer): string[] {
  const now = Date.now();
  const table = renderTable(
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
      { head: 'tokens/s', value: rateText, right: true, spare: 1 },
      { head: 'because', value: ({ because }) => because, shrink: true, spare: 1 },
    ],
    widthFor(printer.stdout),
  );
  const open = asked.map(
    ({ pool, place, count }) => `${pool}: ${count} ${placeName(place)} asked for, not answered yet`,
  );
  return [...(instances.length > 0 ? [table] : []), ...(open.length > 0 ? [open.join('\n')] : [])];
}

/** The rate of a machine as text. */
export const rateText = ({
  tokensPerSecond: rate,
}: {
  readonly tokensPerSecond?: number | undefined;
}): string | undefined => (rate === undefined ? undefined : showCount(rate));

const age = (from: string, to: string | undefined, now: number): string =>
  showSpan((to === undefined ? now : Date.parse(to)) - Date.parse(from));
