/** `petrel resume <run> [--wait]`: go on with a run that is paused, stopped or failed, or whose driver is gone. */
import { TerminalError } from '../../core/errors.ts';
import { petrelHome } from '../../infra/home.ts';
import type { CommandContext, CommandInput } from '../command.ts';
import { EXIT, exitCodeOfState, type ExitCode } from '../exit-codes.ts';
import { flag, textOption, word } from '../options.ts';
import { driverAfterUp } from '../runs/driver.ts';
import { findRun } from '../runs/find.ts';
import { waitForEnd } from '../runs/wait.ts';
import { skipBatch } from '../runs/skip.ts';
import { refuseResume, resume } from '../runs/wishes.ts';

export async function run(input: CommandInput, context: CommandContext): Promise<ExitCode> {
  const { printer, env } = context;
  refuseWhatIsNotBuilt(input);
  const found = await findRun(word(input, 0), context);
  refuseResume(found, await found.log.status());
  const position = (await found.log.head())?.position ?? 0;
  if (flag(input, 'skip')) printer.notice(await skipBatch(found));
  const driver = await driverAfterUp(found, petrelHome(env), printer);
  try {
    const entry = await resume(found, driver, new Date());
    const answer = { runId: found.runId, iteration: position };
    if (!flag(input, 'wait')) {
      printer.data(answer, () => `${found.runId} goes on after iteration ${position}\nnext: petrel status ${found.runId} --watch`);
      return EXIT.ok;
    }
    printer.notice(`${found.runId} goes on after iteration ${position}`);
    const state = (await waitForEnd(found.log, entry, driver.ended())) ?? 'running';
    printer.data({ ...answer, iteration: (await found.log.head())?.position ?? 0, state }, () => `${found.runId} is ${state}`);
    return exitCodeOfState(state);
  } finally {
    await driver.close();
  }
}

function refuseWhatIsNotBuilt(input: CommandInput): void {
  const [override] = input.words.slice(1);
  const what = textOption(input, 'from') !== undefined ? '--from' : flag(input, 'acceptChanges') ? '--accept-changes' : override === undefined ? undefined : `a changed recipe (${override})`;
  if (what === undefined) return;
  throw new TerminalError('NotBuilt', `resume with ${what} is not built yet`, { hint: 'petrel resume <run> goes on with the recipe as it is' });
}
