/** `petrel stop <run> [--wait]`: finish the update, write a checkpoint, end. */
import { findRun, patientRun, requestRunState, waitUntilEnd } from '../../api/index.ts';
import type { RequestAnswer } from '../../api/index.ts';
import { elsewhereText } from '../runs/words.ts';
import type { CommandContext, CommandInput } from '../command.ts';
import { EXIT, exitCodeOfState, type ExitCode } from '../exit-codes.ts';
import { flag, word } from '../options.ts';

export async function run(input: CommandInput, context: CommandContext): Promise<ExitCode> {
  const { printer } = context;
  const found = await findRun(word(input, 0), context);
  const { met, owner, entry } = await requestRunState(found, 'stop', context);
  if (!flag(input, 'wait')) {
    printer.data({ runId: found.runId, wish: 'stop', met }, () =>
      owner === undefined ? text(found.runId, met) : elsewhereText(found.runId, owner),
    );
    return EXIT.ok;
  }
  const state = await waitUntilEnd(patientRun(found, { say: printer.notice }), entry, context);
  printer.data({ runId: found.runId, state }, () => `${found.runId} is ${state}\nnext: petrel resume ${found.runId}`);
  return exitCodeOfState(state);
}

function text(runId: string, met: RequestAnswer): string {
  if (met === 'stack-down') return `noted: ${runId} stops when the local stack is up again (petrel up)`;
  return `${runId} finishes a committed batch, writes a checkpoint and stops\nnext: petrel resume ${runId}`;
}
