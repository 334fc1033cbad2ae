/** `petrel rm <run>`: delete a run that has ended. */
import type { CommandContext, CommandInput } from '../command.ts';
import { confirmed } from '../confirm.ts';
import { EXIT, type ExitCode } from '../exit-codes.ts';
import { word } from '../options.ts';
import { counted, showBytes } from '../../core/quantities.ts';
import { findRun, refuseUnlessEnded, refuseWhileForked, removalLoss, removeRun, runSummary } from '../../api/index.ts';

export async function run(input: CommandInput, context: CommandContext): Promise<ExitCode> {
  const { printer } = context;
  const found = await findRun(word(input, 0), context);
  const summary = await runSummary(found);
  refuseUnlessEnded(summary);
  await refuseWhileForked(found);
  const loss = await removalLoss(found);
  const what = `${counted(loss.checkpoints, 'checkpoint')}, ${counted(summary.iteration, 'iteration')}, ${showBytes(loss.bytes)}`;
  if (!(await confirmed(`Delete ${found.runId} (${summary.state}): ${what}?`, input, context))) {
    printer.notice('nothing was deleted');
    return EXIT.interrupted;
  }
  await removeRun(found, summary, new Date());
  printer.data({ runId: found.runId, removed: loss }, () => `deleted ${found.runId}: ${what}`);
  return EXIT.ok;
}
