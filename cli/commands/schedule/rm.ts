/** `petrel schedule rm <name>`: no more runs; those there are stay. */
import { petrelHome } from '../../../infra/home.ts';
import { changeSchedule } from '../../../infra/store/schedule-log.ts';
import type { CommandContext, CommandInput } from '../../command.ts';
import { confirmed } from '../../confirm.ts';
import { EXIT, type ExitCode } from '../../exit-codes.ts';
import { word } from '../../options.ts';
import { findSchedule } from '../../schedules/find.ts';
import { liveSchedule, withTemporal } from '../../schedules/live.ts';

export async function run(input: CommandInput, context: CommandContext): Promise<ExitCode> {
  const { printer, env } = context;
  const { log, record } = await findSchedule(word(input, 0), context);
  const { active } = await log.view();
  if (!(await confirmed(`Remove the schedule ${log.name}? Its runs stay.`, input, context))) {
    printer.notice('nothing was removed');
    return EXIT.interrupted;
  }
  await changeSchedule(
    log,
    (last) => (last?.state === 'removed' ? undefined : { state: 'removed', owner: last?.owner ?? record.owner }),
    new Date(),
  );
  await withTemporal(petrelHome(env), (ports) => liveSchedule(ports, log));
  const going = active.length === 0 ? '' : `; ${active.join(', ')} ${active.length === 1 ? 'goes' : 'go'} on`;
  printer.data({ name: log.name, removed: true, active }, () => `removed the schedule ${log.name}${going}`);
  return EXIT.ok;
}
