/** `petrel ls`: runs, newest first, from the stores alone. */
import { InvalidInputError } from '../../core/errors.ts';
import { nearest } from '../../core/nearest.ts';
import { runStates } from '../../core/run-states.ts';
import type { CommandContext, CommandInput } from '../command.ts';
import { flag, integerOption, textOption } from '../options.ts';
import type { Printer } from '../printer/printer.ts';
import { showMoment, showNumber } from '../../core/quantities.ts';
import { renderTable, widthFor } from '../printer/table.ts';
import { listRunIds, openKnownStores, openRun, runSummary } from '../../api/index.ts';
import type { RunSummary } from '../../api/index.ts';
import { iterationText, styledState, validationText } from '../runs/words.ts';

export async function run(input: CommandInput, { printer, home }: CommandContext): Promise<undefined> {
  const limit = flag(input, 'all') ? Number.POSITIVE_INFINITY : (integerOption(input, 'limit', 1) ?? 20);
  const state = stateOption(input);
  const listed = await listRunIds(await openKnownStores(home, printer.notice));
  const runs: RunSummary[] = [];
  let more = false;
  for (const one of listed) {
    const found = await openRun(one);
    const summary = found && (await runSummary(found));
    if (summary === undefined || (state !== undefined && summary.state !== state)) continue;
    if (runs.length === limit) {
      more = true;
      break;
    }
    runs.push(summary);
  }
  printer.data(runs, () => (runs.length === 0 ? 'no runs' : table(runs, printer)));
  if (printer.json) return undefined;
  if (more) printer.notice(`the newest ${limit}; petrel ls --all shows all`);
  if (runs.length === 0)
    printer.notice(state === undefined ? 'petrel run <recipe> starts one' : 'petrel ls shows those in other states');
  return undefined;
}

function stateOption(input: CommandInput): string | undefined {
  const state = textOption(input, 'state');
  if (state === undefined || runStates.some((one) => one === state)) return state;
  const meant = nearest(state, runStates);
  throw new InvalidInputError(`--state: there is no state ${state}`, {
    hint: meant === undefined ? `the states are ${runStates.join(', ')}` : `did you mean ${meant}?`,
  });
}

function table(runs: readonly RunSummary[], printer: Printer): string {
  const now = new Date();
  const columns = [
    { head: 'run', value: (run: RunSummary) => run.runId },
    { head: 'state', value: (run: RunSummary) => styledState(run, printer) },
    { head: 'iteration', value: iterationText },
    { head: 'reward', value: (run: RunSummary) => run.reward?.toFixed(3), spare: 4 },
    { head: 'loss', value: (run: RunSummary) => (run.loss === null ? undefined : showNumber(run.loss)), spare: 5 },
    { head: 'validation', value: (run: RunSummary) => validationText(run), spare: 6 },
    { head: 'started', value: (run: RunSummary) => showMoment(new Date(run.createdAt), now), spare: 1 },
    { head: 'changed', value: (run: RunSummary) => showMoment(new Date(run.changedAt), now), spare: 2 },
    { head: 'why', value: (run: RunSummary) => run.reason?.message.split('\n')[0], shrink: true, spare: 3 },
  ].filter(({ head, value }) => !['loss', 'why'].includes(head) || runs.some((run) => value(run) !== undefined));
  return renderTable(runs, columns, widthFor(printer.stdout));
}
