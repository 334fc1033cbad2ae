/** What a person sees before a run continues in a new term. */
import { recipeChangeText } from '../../api/index.ts';
import type { AbandonedIteration, FoundRun, TermPlan } from '../../api/index.ts';
import { showNumber } from '../../core/quantities.ts';
import type { Printer } from '../printer/printer.ts';
import { renderTable } from '../printer/table.ts';
import { validationText } from './words.ts';

/** Shows where the run continues, what changes and which iterations no longer count. */
export function showPlan(
  { runId }: FoundRun,
  { position, abandoned, reason, changes }: TermPlan,
  printer: Printer,
): void {
  printer.notice(`${runId} continues after iteration ${position} in a new term: ${reason}`);
  for (const change of changes) printer.notice(`  ${recipeChangeText(change)}`);
  if (abandoned.length > 0) printer.notice(abandonedTable(abandoned, printer));
}

function abandonedTable(rows: readonly AbandonedIteration[], printer: Printer): string {
  const columns = [
    { head: 'iteration', value: (row: AbandonedIteration) => row.iteration },
    { head: 'reward', value: (row: AbandonedIteration) => row.reward?.toFixed(3) },
    { head: 'loss', value: (row: AbandonedIteration) => (row.loss === null ? undefined : showNumber(row.loss)) },
    { head: 'validation', value: validationText },
    { head: 'checkpoint', value: (row: AbandonedIteration) => (row.checkpoint ? 'out of reach' : undefined) },
    { head: 'state', value: (row: AbandonedIteration) => (row.applied ? undefined : 'not applied yet') },
  ].filter(({ value }) => rows.some((row) => value(row) !== undefined));
  return renderTable(rows, columns, printer.stderr.columns);
}
