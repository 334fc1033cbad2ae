/** `petrel gc`: the janitor's pass, by hand. */
import { parseDuration } from '../../core/schedules/duration.ts';
import { petrelHome } from '../../infra/home.ts';
import { sweepStore } from '../../infra/retention/sweep.ts';
import type { Sweep } from '../../infra/retention/sweep.ts';
import type { CommandContext, CommandInput } from '../command.ts';
import { flag, textOption } from '../options.ts';
import type { Printer } from '../printer/printer.ts';
import { showBytes } from '../printer/quantities.ts';
import { renderTable } from '../printer/table.ts';
import { openKnownStores } from '../runs/find.ts';

export async function run(input: CommandInput, context: CommandContext): Promise<undefined> {
  const { printer, env } = context;
  const dryRun = flag(input, 'dryRun');
  const graceMs = parseDuration(textOption(input, 'grace') ?? '10m', '--grace', 0);
  const answers: (Sweep & { readonly store: string })[] = [];
  for (const store of await openKnownStores(petrelHome(env), printer.notice)) {
    answers.push({ store: store.url, ...(await sweepStore(store, { now: new Date(), graceMs, dryRun })) });
  }
  printer.data({ dryRun, stores: answers }, () => answers.map((answer) => text(answer, dryRun, printer)).join('\n\n'));
  return undefined;
}

function text(
  { store, runs, inputs, leftovers }: Sweep & { readonly store: string },
  dryRun: boolean,
  printer: Printer,
): string {
  const shown = runs.filter(
    ({ removed, condemned, problem }) => removed.objects + condemned > 0 || problem !== undefined,
  );
  const table = renderTable(shown, [
    { head: 'run', value: ({ runId }) => runId },
    {
      head: dryRun ? 'would remove' : 'removed',
      value: ({ removed }) => `${removed.objects} objects, ${showBytes(removed.bytes)}`,
    },
    { head: 'checkpoints', value: ({ removed }) => removed.checkpoints.join(' ') },
    { head: 'next time', value: ({ condemned }) => condemned, right: true },
    { head: 'kept after iteration', value: ({ floor }) => floor, right: true },
    ...(shown.some(({ problem }) => problem !== undefined)
      ? [{ head: 'trouble', value: ({ problem }: (typeof shown)[number]) => printer.style('red', problem ?? '') }]
      : []),
  ]);
  const lines = [
    store,
    shown.length === 0 ? `nothing to remove in ${runs.length} runs` : table,
    inputs.removed.length + inputs.unnamed.length === 0
      ? ''
      : `models and datasets that no run names: ${inputs.removed.length} ${dryRun ? 'would be removed' : 'removed'}, ${inputs.unnamed.length} wait for a day`,
    leftovers === 0 ? '' : `${leftovers} files of writers that died were removed`,
  ];
  return lines.filter((line) => line !== '').join('\n');
}
