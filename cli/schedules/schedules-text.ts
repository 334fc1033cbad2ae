/** How schedules read. */
import { overlapDocs } from '../../core/records/overlap-policies.ts';
import { showSpan } from '../../core/schedules/duration.ts';
import { showTimes } from '../../core/schedules/times.ts';
import type { Printer } from '../printer/printer.ts';
import { showDuration } from '../../core/quantities.ts';
import { renderFields, renderTable, widthFor } from '../printer/table.ts';
import { validationText } from '../runs/words.ts';
import type { FiringSummary, ScheduleSummary } from '../../api/index.ts';

/** `2026-11-21 03:00:00Z`. */
export function showTime(iso: string): string {
  return `${iso.slice(0, 10)} ${iso.slice(11, 19)}Z`;
}

export function scheduleTable(schedules: readonly ScheduleSummary[], printer: Printer): string {
  const newest = ({ firings }: ScheduleSummary) => firings.find(({ runId }) => runId !== null);
  const columns = [
    { head: 'schedule', value: ({ name }: ScheduleSummary) => name },
    { head: 'state', value: ({ state }: ScheduleSummary) => state },
    { head: 'when', value: ({ times }: ScheduleSummary) => showTimes(times), spare: 4 },
    { head: 'next', value: ({ nextTimes: [next] }: ScheduleSummary) => next && showTime(next) },
    { head: 'overlap', value: ({ overlap }: ScheduleSummary) => overlap, spare: 3 },
    { head: 'last run', value: (schedule: ScheduleSummary) => newest(schedule)?.runId ?? undefined, spare: 6 },
    { head: 'run state', value: (schedule: ScheduleSummary) => newest(schedule)?.state ?? undefined, spare: 5 },
    {
      head: 'validation',
      value: (schedule: ScheduleSummary) => validationOf(newest(schedule)),
      spare: 2,
    },
    { head: 'took', value: (schedule: ScheduleSummary) => secondsText(newest(schedule)?.seconds), spare: 1 },
    { head: 'blocked by', value: blockedText, shrink: true },
  ];
  return renderTable(schedules, columns, widthFor(printer.stdout));
}

export function scheduleText(schedule: ScheduleSummary, printer: Printer): string {
  return [
    renderFields(fieldsOf(schedule), printer.stdout),
    ...(schedule.firings.length === 0 ? [] : ['', firingTable(schedule.firings, printer)]),
  ].join('\n');
}

function fieldsOf(schedule: ScheduleSummary): readonly (readonly [string, string | number | undefined])[] {
  const {
    name,
    state,
    note,
    times,
    overlap,
    jitterMs,
    until,
    catchUpMs,
    backfill,
    kind,
    since,
    store,
    nextTimes,
    waiting,
    skipped,
    missed,
    owner,
    mine,
  } = schedule;
  return [
    ['schedule', name],
    ['state', note === undefined ? state : `${state}: ${note}`],
    ['when', showTimes(times)],
    ['next', nextTimes.length === 0 ? '-' : nextTimes.map(showTime).join('\n')],
    ['overlap', `${overlap}: ${overlapDocs[overlap]}`],
    ['jitter', jitterMs === null ? undefined : `up to ${showSpan(jitterMs)} later`],
    ['until', until === null ? undefined : showTime(until)],
    ['catch-up', `what is up to ${showSpan(catchUpMs)} late`],
    [
      'backfill',
      backfill === null ? undefined : `${showTime(backfill.from)} to ${showTime(backfill.to)}, ${backfill.left} left`,
    ],
    ['blocked by', blockedText(schedule)],
    ['waiting', waiting === 0 ? undefined : waiting],
    ['skipped', skipped === 0 ? undefined : skipped],
    ['missed', missed === null || missed === 0 ? undefined : `${missed}, while the stack was down`],
    ['recipe', `${kind}, as it was on ${showTime(since)}`],
    ['store', store],
    ['fired by', mine ? undefined : `${owner}, another stack; petrel schedule unpause ${name} takes it over`],
  ];
}

/** `all` is blocked by nothing. */
function blockedText({ active, overlap }: ScheduleSummary): string | undefined {
  return active.length === 0 || overlap === 'all'
    ? undefined
    : active.map(({ runId, state }) => `${runId} (${state})`).join(', ');
}

function firingTable(firings: readonly FiringSummary[], printer: Printer): string {
  const columns = [
    { head: 'time', value: ({ time }: FiringSummary) => showTime(time) },
    { head: 'kind', value: ({ kind }: FiringSummary) => kind, spare: 3 },
    { head: 'outcome', value: ({ outcome }: FiringSummary) => outcome },
    { head: 'run', value: ({ runId }: FiringSummary) => runId ?? undefined },
    { head: 'state', value: ({ state }: FiringSummary) => state ?? undefined, spare: 4 },
    { head: 'validation', value: validationText, spare: 2 },
    { head: 'took', value: ({ seconds }: FiringSummary) => secondsText(seconds), spare: 1 },
    { head: 'why', value: ({ why }: FiringSummary) => why, shrink: true },
  ].filter(({ head, value }) => head !== 'why' || firings.some((firing) => value(firing) !== undefined));
  return renderTable(firings, columns, widthFor(printer.stdout));
}

const validationOf = (firing: FiringSummary | undefined) => firing && validationText(firing);

function secondsText(seconds: number | null | undefined): string | undefined {
  return seconds === null || seconds === undefined ? undefined : showDuration(seconds);
}
