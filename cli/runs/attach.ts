/** Showing a run's progress until it ends or pauses, or the user leaves. */
import { followRun, patientLog, patientRun, waitUntilEnd } from '../../api/index.ts';
import type { FollowOptions, FoundRun, RunLog } from '../../api/index.ts';
import type { StatusEntry } from '../../core/records/schema.ts';
import type { RunState } from '../../core/run-states.ts';
import type { CommandContext } from '../command.ts';
import { EXIT, exitCodeOfState } from '../exit-codes.ts';
import type { ExitCode } from '../exit-codes.ts';
import { untilInterrupted } from '../interrupt.ts';
import { createLiveDisplay } from '../printer/live-display.ts';
import type { Printer } from '../printer/printer.ts';
import { sayOutcome } from './outcome.ts';
import { resumeCommand } from './words.ts';

/**
 * Shows a run for `petrel run`. With `stay` it waits until the run ends or pauses, and leaves with a code that tells
 * which.
 */
export async function attach(log: RunLog, context: CommandContext, stay: boolean): Promise<ExitCode> {
  const paused = new AbortController();
  const { interrupted } = await untilInterrupted((signal) =>
    showProgress(log, context, {
      signal: AbortSignal.any([signal, paused.signal]),
      onState: (state) => {
        if (state === 'paused' && stay) paused.abort();
      },
    }),
  );
  if (interrupted) {
    sayLeft(log, context.printer);
    return EXIT.interrupted;
  }
  const { interrupted: left, value: outcome } = await untilInterrupted((signal) =>
    sayOutcome(patientRun({ log }, { signal, say: context.printer.notice }), context),
  );
  if (left || outcome === undefined) return EXIT.interrupted;
  const { state } = outcome;
  return stay || state !== 'completed' ? exitCodeOfState(state) : EXIT.ok;
}

/**
 * Shows a run that was resumed or forked: its status entries up to `after` are old news. A stack that is down is
 * brought up. Resolves with the state that the run came to; undefined when the user left.
 */
export async function attachAfter(
  found: FoundRun,
  after: StatusEntry,
  context: CommandContext,
): Promise<RunState | undefined> {
  const { interrupted, value } = await untilInterrupted(async (signal) => {
    const ended = new AbortController();
    const shown = showProgress(found.log, context, { signal: AbortSignal.any([signal, ended.signal]), after: after.n });
    try {
      return await waitUntilEnd(patientRun(found, { signal, say: () => undefined }), after, context, signal);
    } finally {
      ended.abort();
      await shown;
    }
  });
  if (!interrupted) return value;
  sayLeft(found.log, context.printer);
  return undefined;
}

/** Shows progress until the run ends or the signal comes. */
async function showProgress(
  log: RunLog,
  context: CommandContext,
  options: Omit<FollowOptions, 'onProgress'>,
): Promise<void> {
  const display = createLiveDisplay(context.printer, Date.now);
  const { signal } = options;
  await followRun(patientLog(log, { signal, say: (line) => display.note(line) }), context, {
    ...options,
    onProgress: (progress) => display.update(progress),
    onState: (state, reason) => {
      if (state === 'paused' || state === 'failed') display.note(stateLine(log.runId, state, reason));
      options.onState?.(state, reason);
    },
  });
  display.end();
}

function sayLeft({ runId }: RunLog, printer: Printer): void {
  const next = [`petrel status ${runId} --watch`, `petrel stop ${runId}`];
  printer.notice([`${runId} continues`, 'next:', ...next.map((command) => `  ${command}`)].join('\n'));
}

function stateLine(runId: string, state: RunState, reason: StatusEntry['reason']): string {
  const line = `${runId} is ${state}${reason === undefined ? '' : `: ${reason.message}`}`;
  return state === 'paused' ? `${line}\nnext: ${resumeCommand(runId, reason)}` : line;
}
