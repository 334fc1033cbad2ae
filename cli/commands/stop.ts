/** `petrel stop <run> [--wait]`: finish the update, write a checkpoint, end. */
import { petrelHome } from '../../infra/home.ts';
import { stackName } from '../../infra/stack/index.ts';
import type { CommandContext, CommandInput } from '../command.ts';
import { EXIT, exitCodeOfState, type ExitCode } from '../exit-codes.ts';
import { flag, word } from '../options.ts';
import { driverAfterUp, driverIfUp } from '../runs/driver.ts';
import { findRun } from '../runs/find.ts';
import { waitForEnd } from '../runs/wait.ts';
import { elsewhereText, refuseWish, wish } from '../runs/wishes.ts';
import type { Met } from '../runs/wishes.ts';

export async function run(input: CommandInput, context: CommandContext): Promise<ExitCode> {
  const { printer, env } = context;
  const found = await findRun(word(input, 0), context);
  refuseWish(found, await found.log.status(), 'stop');
  const home = petrelHome(env);
  const wait = flag(input, 'wait');
  const driver = wait ? await driverAfterUp(found, home, printer) : await driverIfUp(found, home);
  try {
    const { entry, met, owner } = await wish(found, 'stop', driver, stackName(home), new Date());
    // The checkpoint needs a workflow: it recovers, reads the wish and ends.
    if (met === 'nobody') await driver?.start(false);
    if (!wait || driver === undefined) {
      printer.data({ runId: found.runId, wish: 'stop', met }, () =>
        owner === undefined ? text(found.runId, met) : elsewhereText(found.runId, owner),
      );
      return EXIT.ok;
    }
    const state = (await waitForEnd(found.log, entry, owner === undefined ? driver.ended() : otherStack)) ?? 'running';
    printer.data(
      { runId: found.runId, state },
      () => `${found.runId} is ${state}; petrel resume ${found.runId} goes on`,
    );
    return exitCodeOfState(state);
  } finally {
    await driver?.close();
  }
}

/** Whether its workflow has ended cannot be asked from here: the store tells. */
const otherStack = new Promise<void>(() => {});

function text(runId: string, met: Met): string {
  if (met === 'stack-down') return `noted: ${runId} stops when the local stack is up again (petrel up)`;
  return `${runId} finishes a committed batch, writes a checkpoint and stops; petrel resume ${runId} goes on`;
}
