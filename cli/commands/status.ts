/** `petrel status [run] [--watch]`. */
import {
  findRun,
  fullDisks,
  instanceName,
  machineStatus,
  openLiveSource,
  patientRun,
  RunCost,
  runStatus,
  stackName,
} from '../../api/index.ts';
import type { FoundRun, LiveSource } from '../../api/index.ts';
import type { CommandContext, CommandInput } from '../command.ts';
import { EXIT } from '../exit-codes.ts';
import type { ExitCode } from '../exit-codes.ts';
import { flag } from '../options.ts';
import type { Printer } from '../printer/printer.ts';
import { machineStatusText } from '../runs/machine-text.ts';
import { runStatusText } from '../runs/status-text.ts';
import { endedStates } from '../../core/run-states.ts';
import { keepShowing } from '../runs/keep-showing.ts';
import type { Shown } from '../runs/keep-showing.ts';

export async function run(input: CommandInput, context: CommandContext): Promise<ExitCode> {
  const { printer } = context;
  const [word] = input.words;
  const { home } = context;
  const found = word === undefined ? undefined : await findRun(word, context);
  for (const text of await fullDisks(context, found)) printer.notice(text);
  const live = await openLiveSource(home);
  const cost = found && new RunCost({ home }, found.runId);
  const look = (run: FoundRun | undefined) =>
    run === undefined || cost === undefined
      ? lookAtMachine(home, live, printer)
      : lookAtRun(run, cost, live, home, printer);
  let watched: FoundRun | undefined;
  const watch = (signal: AbortSignal) =>
    look((watched ??= found && patientRun(found, { signal, say: printer.notice })));
  try {
    if (flag(input, 'watch')) return (await keepShowing(watch, printer)) === 'interrupted' ? EXIT.interrupted : EXIT.ok;
    const { value, text } = await look(found);
    printer.data(value, () => text);
    return EXIT.ok;
  } finally {
    await live.close();
  }
}

async function lookAtRun(
  found: FoundRun,
  cost: RunCost,
  live: LiveSource,
  home: string,
  printer: Printer,
): Promise<Shown> {
  const usd = await cost.usd();
  const status = {
    ...(await runStatus(found, live, { stack: stackName(home), instance: instanceName(home) })),
    ...(usd !== undefined && { usd }),
  };
  return { value: status, text: runStatusText(status, printer, new Date()), ended: endedStates.has(status.state) };
}

async function lookAtMachine(home: string, live: LiveSource, printer: Printer): Promise<Shown> {
  const status = await machineStatus(home, live, printer.notice);
  return { value: status, text: machineStatusText(status, printer), ended: false };
}
