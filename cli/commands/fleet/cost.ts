/** `petrel cost [RUN]`. */
import { costReport, findRun } from '../../../api/index.ts';
import { uses } from '../../../core/fleet/cost.ts';
import type { Charge, Use } from '../../../core/fleet/cost.ts';
import { showUsd } from '../../../core/quantities.ts';
import type { CommandContext, CommandInput } from '../../command.ts';
import { textOption } from '../../options.ts';
import { renderTable, widthFor } from '../../printer/table.ts';

type Column = 'run' | 'use' | 'pool' | 'zone' | 'iteration';

/** A line of the table: dollars by what the time was spent on. */
interface Row {
  readonly name: string;
  readonly usd: number;
  readonly byUse: Readonly<Record<Use, number>>;
}

export async function run(input: CommandInput, context: CommandContext): Promise<undefined> {
  const { charges, missing } = await costReport(context);
  const [word] = input.words;
  // A run that was deleted is still in the bill, by its id.
  const isBilled = word === undefined || charges.some(({ run: of }) => of === word);
  const only = isBilled ? word : (await findRun(word, context)).runId;
  const by = (textOption(input, 'by') ?? 'run') as Column;
  const counted = charges.filter((charge) => only === undefined || charge.run === only);
  const rows = rowsBy(counted, by);
  const microUsd = counted.reduce((sum, charge) => sum + charge.microUsd, 0);
  const report = { usd: microUsd / 1e6, by, rows, missing };
  context.printer.data(report, () => {
    const columns = uses.map((use) => ({
      head: use,
      value: ({ byUse }: Row) => shown(byUse[use]),
      right: true,
      spare: 1,
    }));
    const table = renderTable(
      rows,
      [
        { head: by, value: ({ name }) => name, shrink: true },
        { head: '$', value: ({ usd }) => usd.toFixed(4), right: true },
        ...(by === 'use' ? [] : columns),
      ],
      widthFor(context.printer.stdout),
    );
    const total = `${showUsd(microUsd / 1e6)}, without ${missing.join(', ')}`;
    if (rows.length > 0) return `${table}\n\n${total}`;
    return only === undefined ? 'no instance has been bought' : `no bought instance has worked for ${only}`;
  });
  return undefined;
}

const shown = (usd: number): string => (usd === 0 ? '' : usd.toFixed(4));

/** What no run used belongs to the stack. */
function rowsBy(charges: readonly Charge[], by: Column): Row[] {
  const sums = new Map<string, Map<Use, number>>();
  for (const charge of charges) {
    const name = String(charge[by] ?? 'stack');
    const ofName = sums.get(name) ?? new Map<Use, number>();
    sums.set(name, ofName.set(charge.use, (ofName.get(charge.use) ?? 0) + charge.microUsd));
  }
  return [...sums]
    .map(([name, ofName]): Row => {
      const byUse = Object.fromEntries(uses.map((use) => [use, (ofName.get(use) ?? 0) / 1e6])) as Record<Use, number>;
      return { name, usd: [...ofName.values()].reduce((sum, one) => sum + one, 0) / 1e6, byUse };
    })
    .sort((a, b) => (by === 'iteration' ? Number(a.name) - Number(b.name) : b.usd - a.usd));
}
