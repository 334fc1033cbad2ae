/** `petrel logs <run> [-f]`: stored lines; with -f those that come, until the run has ended. */
import { setTimeout as delay } from 'node:timers/promises';
import type { LogLine } from '../../core/wire/messages.ts';
import type { CommandContext, CommandInput } from '../command.ts';
import { EXIT } from '../exit-codes.ts';
import type { ExitCode } from '../exit-codes.ts';
import { flag, integerOption, word } from '../options.ts';
import type { Printer } from '../printer/printer.ts';
import { printable } from '../printer/printable.ts';
import { findRun, isStoreRefusal, listenToLog, LogReader, patientRun } from '../../api/index.ts';
import type { FoundRun } from '../../api/index.ts';
import { endedStates } from '../../core/run-states.ts';

/** How often the store is looked at: for lines that NATS did not bring, and for the end. */
const lookMs = 500;
/** Lines of the last second are stored a second later. */
const lastLinesMs = 1_500;

export async function run(input: CommandInput, context: CommandContext): Promise<ExitCode> {
  const { printer } = context;
  const count = integerOption(input, 'lines', 0) ?? 100;
  const found = await findRun(word(input, 0), context);
  if (flag(input, 'follow')) return follow(found, count, context.home, printer);
  const reader = new LogReader(found.log.store, found.runId);
  const stored = await reader.newest(count);
  const lines = stored.filter((line) => isShown(line, printer));
  printer.data(stored, () => lines.map((line) => lineText(line, printer)).join('\n'));
  if (lines.length === 0 && !printer.json) printer.notice(`${found.runId} has no log lines yet`);
  return EXIT.ok;
}

/** Follows the log; with --json each entry is one line, because a stream has no end to close an array with. */
async function follow(run: FoundRun, count: number, home: string, printer: Printer): Promise<ExitCode> {
  const show = (lines: readonly LogLine[]) =>
    lines.filter((line) => isShown(line, printer)).forEach((line) => printer.item(line, () => lineText(line, printer)));
  const leave = new AbortController();
  const found = patientRun(run, { signal: leave.signal, say: printer.notice });
  const reader = new LogReader(found.log.store, found.runId);
  const early: LogLine[] = [];
  let take = (line: LogLine): void => void early.push(line);
  const close = await listenToLog(home, found.runId, (line) => take(line));
  const onInterrupt = () => leave.abort();
  process.once('SIGINT', onInterrupt);
  try {
    show(await reader.newest(count));
    take = (line) => show([reader.live(line)].filter((one) => one !== undefined));
    early.forEach(take);
    while (!leave.signal.aborted && !(await hasEnded(found))) {
      await delay(lookMs, undefined, { signal: leave.signal }).catch(() => {});
      show(await reader.more());
    }
    if (leave.signal.aborted) return EXIT.interrupted;
    await delay(lastLinesMs, undefined, { signal: leave.signal }).catch(() => {});
    show(await reader.more());
    return EXIT.ok;
  } catch (error) {
    if (leave.signal.aborted && isStoreRefusal(error)) return EXIT.interrupted;
    throw error;
  } finally {
    process.removeListener('SIGINT', onInterrupt);
    await close();
  }
}

/** What only those who work on petrel want to know is in --json. */
const isShown = ({ level }: LogLine, printer: Printer): boolean => printer.json || level !== 'debug';

async function hasEnded({ log }: FoundRun): Promise<boolean> {
  return endedStates.has((await log.status.newest())?.state ?? 'queued');
}

/** `14:03:07.512` from a time in ISO 8601. */
const localTime = (at: string): string => new Date(at).toTimeString().slice(0, 8) + at.slice(19, 23);

/** Local time of day, who, what; the level only when it is not info. */
function lineText({ at, level, source, text }: LogLine, printer: Printer): string {
  const word =
    level === 'info' ? '' : `${printer.style(level === 'error' ? 'red' : level === 'warn' ? 'yellow' : 'dim', level)} `;
  return `${printer.style('dim', localTime(at))} ${source}: ${word}${printable(text)}`;
}
