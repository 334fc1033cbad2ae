/** `petrel pause <run>`: pause after the current iteration. */
import { findRun, requestRunState } from '../../api/index.ts';
import type { RequestAnswer } from '../../api/index.ts';
import { elsewhereText } from '../runs/words.ts';
import type { CommandContext, CommandInput } from '../command.ts';
import { word } from '../options.ts';

export async function run(input: CommandInput, context: CommandContext): Promise<undefined> {
  const found = await findRun(word(input, 0), context);
  const { met, owner, state } = await requestRunState(found, 'pause', context);
  context.printer.data({ runId: found.runId, state, wish: 'pause', met }, () =>
    owner === undefined ? text(found.runId, state, met) : elsewhereText(found.runId, owner),
  );
  return undefined;
}

function text(runId: string, state: string, met: RequestAnswer): string {
  if (state === 'paused') return `${runId} is paused\nnext: petrel resume ${runId}`;
  if (met === 'stack-down') return `noted: ${runId} pauses when the local stack is up again (petrel up)`;
  return `${runId} pauses after its current iteration\nnext: petrel resume ${runId}`;
}
