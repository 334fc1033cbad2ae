/** `petrel schedule pause <name>`. */
import { petrelHome } from '../../../infra/home.ts';
import { changeSchedule } from '../../../infra/store/schedule-log.ts';
import type { CommandContext, CommandInput } from '../../command.ts';
import { textOption, word } from '../../options.ts';
import { findSchedule } from '../../schedules/find.ts';
import { liveSchedule, withTemporal } from '../../schedules/live.ts';

export async function run(input: CommandInput, context: CommandContext): Promise<undefined> {
  const { log, record } = await findSchedule(word(input, 0), context);
  const note = textOption(input, 'note');
  await changeSchedule(
    log,
    (last) =>
      last?.state === 'paused' && note === undefined
        ? undefined
        : { state: 'paused', owner: last?.owner ?? record.owner, ...(note === undefined ? {} : { note }) },
    new Date(),
  );
  await withTemporal(petrelHome(context.env), (ports) => liveSchedule(ports, log));
  context.printer.data(
    { name: log.name, state: 'paused', note: note ?? null },
    () => `schedule ${log.name} is paused; petrel schedule unpause ${log.name} goes on`,
  );
  return undefined;
}
