/** `petrel cancel <run>`: end where it is. */
import { petrelHome } from '../../infra/home.ts';
import { stackName } from '../../infra/stack/index.ts';
import type { CommandContext, CommandInput } from '../command.ts';
import { confirmed } from '../confirm.ts';
import { EXIT, type ExitCode } from '../exit-codes.ts';
import { word } from '../options.ts';
import { driverIfUp } from '../runs/driver.ts';
import { findRun } from '../runs/find.ts';
import { summaryOf } from '../runs/summary.ts';
import { elsewhereText, fulfil, refuseWish, wish } from '../runs/wishes.ts';
import type { Met } from '../runs/wishes.ts';

export async function run(input: CommandInput, context: CommandContext): Promise<ExitCode> {
  const { printer, env } = context;
  const found = await findRun(word(input, 0), context);
  refuseWish(found, await found.log.status(), 'cancel');
  const { iteration, latestCheckpoint } = await summaryOf(found);
  const kept =
    latestCheckpoint === null
      ? 'it has no checkpoint'
      : `its newest checkpoint is of iteration ${latestCheckpoint.iteration}`;
  if (
    !(await confirmed(
      `Cancel ${found.runId} after ${iteration} iterations? It goes on only with resume --from; ${kept}.`,
      input,
      context,
    ))
  ) {
    printer.notice('nothing was done; petrel stop ends it with a checkpoint');
    return EXIT.interrupted;
  }
  const driver = await driverIfUp(found, petrelHome(env));
  try {
    const { met, owner } = await wish(found, 'cancel', driver, stackName(petrelHome(env)), new Date());
    if (met === 'nobody') await fulfil(found, 'cancel', new Date());
    const state = (await found.log.status())?.state ?? 'queued';
    printer.data({ runId: found.runId, state, wish: 'cancel', met }, () =>
      owner === undefined ? text(found.runId, met) : elsewhereText(found.runId, owner),
    );
    return EXIT.ok;
  } finally {
    await driver?.close();
  }
}

function text(runId: string, met: Met): string {
  if (met === 'nobody') return `${runId} is cancelled`;
  return met === 'told'
    ? `${runId} ends where it is`
    : `noted: ${runId} ends when the local stack is up again (petrel up)`;
}
