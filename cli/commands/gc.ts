/** `petrel gc`: the janitor's pass, by hand. */
import { collectGarbage } from '../../api/index.ts';
import type { StoreSweep } from '../../api/index.ts';
import { parseDuration } from '../../core/schedules/duration.ts';
import type { CommandContext, CommandInput } from '../command.ts';
import { flag, textOption } from '../options.ts';
import type { Printer } from '../printer/printer.ts';
import { counted, showBytes } from '../../core/quantities.ts';
import { renderTable, widthFor } from '../printer/table.ts';
import type { Column } from '../printer/table.ts';

export async function run(input: CommandInput, context: CommandContext): Promise<undefined> {
  const { printer } = context;
  const dryRun = flag(input, 'dryRun');
  const graceMs = parseDuration(textOption(input, 'grace') ?? '10m', '--grace', 0);
  const answers = await collectGarbage({ graceMs, dryRun }, context);
  printer.data({ dryRun, stores: answers.map(toJson) }, () =>
    answers.map((answer) => text(answer, dryRun, printer)).join('\n\n'),
  );
  return undefined;
}

/** `--json` says `condemned` for what is marked, as it always has. */
function toJson({ runs, ...answer }: StoreSweep) {
  return { ...answer, runs: runs.map(({ marked: condemned, ...run }) => ({ ...run, condemned })) };
}

function text({ store, runs, inputs, leftovers }: StoreSweep, dryRun: boolean, printer: Printer): string {
  const shown = runs.filter(({ removed, marked, problem }) => removed.objects + marked > 0 || problem !== undefined);
  const columns: Column<(typeof shown)[number]>[] = [
    { head: 'run', value: ({ runId }) => runId },
    {
      head: dryRun ? 'would remove' : 'removed',
      value: ({ removed }) => `${counted(removed.objects, 'object')}, ${showBytes(removed.bytes)}`,
    },
    { head: 'checkpoints', value: ({ removed }) => removed.checkpoints.join(' '), spare: 1 },
    { head: 'next time', value: ({ marked }) => marked, right: true },
    { head: 'kept after', value: ({ floor }) => floor, right: true, spare: 2 },
    ...(shown.some(({ problem }) => problem !== undefined)
      ? [{ head: 'trouble', value: ({ problem }: (typeof shown)[number]) => printer.style('red', problem ?? '') }]
      : []),
  ];
  const table = renderTable(shown, columns, widthFor(printer.stdout));
  const lines = [
    store,
    shown.length === 0 ? `nothing to remove in ${counted(runs.length, 'run')}` : table,
    inputs.removed.length + inputs.unnamed.length === 0
      ? ''
      : `models and datasets that no run names: ${inputs.removed.length} ${dryRun ? 'would be removed' : 'removed'}, ${inputs.unnamed.length} wait for a day`,
    inputs.problem === undefined ? '' : `models and datasets: ${inputs.problem}`,
    leftovers === 0
      ? ''
      : `${counted(leftovers, 'file')} of writers that died ${leftovers === 1 ? 'was' : 'were'} removed`,
  ];
  return lines.filter((line) => line !== '').join('\n');
}
