/** `petrel pause <run>`: hold after the next decision. */
import { petrelHome } from '../../infra/home.ts';
import { stackName } from '../../infra/stack/index.ts';
import type { CommandContext, CommandInput } from '../command.ts';
import { word } from '../options.ts';
import { driverIfUp } from '../runs/driver.ts';
import { findRun } from '../runs/find.ts';
import { elsewhereText, fulfil, wish } from '../runs/wishes.ts';
import type { Met } from '../runs/wishes.ts';

export async function run(input: CommandInput, context: CommandContext): Promise<undefined> {
  const found = await findRun(word(input, 0), context);
  const driver = await driverIfUp(found, petrelHome(context.env));
  try {
    const { met, owner } = await wish(found, 'pause', driver, stackName(petrelHome(context.env)), new Date());
    if (met === 'nobody') await fulfil(found, 'pause', new Date());
    const state = (await found.log.status())?.state ?? 'queued';
    context.printer.data({ runId: found.runId, state, wish: 'pause', met }, () =>
      owner === undefined ? text(found.runId, state, met) : elsewhereText(found.runId, owner),
    );
    return undefined;
  } finally {
    await driver?.close();
  }
}

function text(runId: string, state: string, met: Met): string {
  if (state === 'paused') return `${runId} is paused; petrel resume ${runId} goes on`;
  if (met === 'stack-down') return `noted: ${runId} pauses when the local stack is up again (petrel up)`;
  return `${runId} pauses after its current iteration; petrel resume ${runId} goes on`;
}
