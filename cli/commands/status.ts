/** `petrel status [run] [--watch]`. */
import { petrelHome } from '../../infra/home.ts';
import { fullPlaces } from '../../infra/store/admission.ts';
import { stackName } from '../../infra/stack/index.ts';
import type { CommandContext, CommandInput } from '../command.ts';
import { flag } from '../options.ts';
import type { Printer } from '../printer/printer.ts';
import { findRun, openKnownStores } from '../runs/find.ts';
import type { FoundRun } from '../runs/find.ts';
import { openLive } from '../runs/live.ts';
import type { LiveSource } from '../runs/live.ts';
import { machineStatus } from '../runs/machine-status.ts';
import { machineStatusText } from '../runs/machine-text.ts';
import { runStatus } from '../runs/status-report.ts';
import { runStatusText } from '../runs/status-text.ts';
import { endedStates } from '../runs/summary.ts';
import { keepShowing } from '../runs/keep-showing.ts';
import type { Shown } from '../runs/keep-showing.ts';

export async function run(input: CommandInput, context: CommandContext): Promise<undefined> {
  const { printer, env } = context;
  const [word] = input.words;
  const home = petrelHome(env);
  const found = word === undefined ? undefined : await findRun(word, context);
  for (const { message } of await fullPlaces(
    found === undefined ? await openKnownStores(home, () => {}) : [found.log.store],
    home,
  ))
    printer.notice(message);
  const live = await openLive(home);
  const look = () =>
    found === undefined ? lookAtMachine(home, live, printer) : lookAtRun(found, live, stackName(home), printer);
  try {
    if (flag(input, 'watch')) await keepShowing(look, printer);
    else {
      const { value, text } = await look();
      printer.data(value, () => text);
    }
  } finally {
    await live.close();
  }
  return undefined;
}

async function lookAtRun(found: FoundRun, live: LiveSource, here: string, printer: Printer): Promise<Shown> {
  const status = await runStatus(found, live, here);
  return { value: status, text: runStatusText(status, printer, new Date()), ended: endedStates.has(status.state) };
}

async function lookAtMachine(home: string, live: LiveSource, printer: Printer): Promise<Shown> {
  const status = await machineStatus(home, live, printer.notice);
  return { value: status, text: machineStatusText(status, printer), ended: false };
}
