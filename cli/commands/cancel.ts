/** `petrel cancel <run>`: end where it is. */
import { findRun, refuseIfEnded, requestRunState, runSummary } from '../../api/index.ts';
import type { RequestAnswer } from '../../api/index.ts';
import { elsewhereText } from '../runs/words.ts';
import type { CommandContext, CommandInput } from '../command.ts';
import { confirmed } from '../confirm.ts';
import { counted } from '../../core/quantities.ts';
import { EXIT, type ExitCode } from '../exit-codes.ts';
import { word } from '../options.ts';

export async function run(input: CommandInput, context: CommandContext): Promise<ExitCode> {
  const { printer } = context;
  const found = await findRun(word(input, 0), context);
  refuseIfEnded(found, await found.log.status.newest(), 'cancel');
  const { iteration, latestCheckpoint } = await runSummary(found);
  const kept =
    latestCheckpoint === null
      ? 'it has no checkpoint'
      : `its newest checkpoint is of iteration ${latestCheckpoint.iteration}`;
  if (
    !(await confirmed(
      `Cancel ${found.runId} after ${counted(iteration, 'iteration')}? Only resume --from continues it; ${kept}.`,
      input,
      context,
    ))
  ) {
    printer.notice('nothing was done; petrel stop ends it with a checkpoint');
    return EXIT.interrupted;
  }
  const { met, owner, state } = await requestRunState(found, 'cancel', context);
  printer.data({ runId: found.runId, state, wish: 'cancel', met }, () =>
    owner === undefined ? text(found.runId, met) : elsewhereText(found.runId, owner),
  );
  return EXIT.ok;
}

function text(runId: string, met: RequestAnswer): string {
  if (met === 'nobody') return `${runId} is cancelled`;
  return met === 'told'
    ? `${runId} ends where it is`
    : `noted: ${runId} ends when the local stack is up again (petrel up)`;
}
