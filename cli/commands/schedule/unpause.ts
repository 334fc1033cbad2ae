/** `petrel schedule unpause <name>`: from now on this stack fires it. */
import { petrelHome } from '../../../infra/home.ts';
import { stackName } from '../../../infra/stack/identity.ts';
import { changeSchedule } from '../../../infra/store/schedule-log.ts';
import type { CommandContext, CommandInput } from '../../command.ts';
import { word } from '../../options.ts';
import { findSchedule } from '../../schedules/find.ts';
import { liveSchedule, withTemporal } from '../../schedules/live.ts';
import { scheduleSummary } from '../../schedules/summary.ts';
import { showTime } from '../../schedules/text.ts';

export async function run(input: CommandInput, context: CommandContext): Promise<undefined> {
  const { printer, env } = context;
  const home = petrelHome(env);
  const stack = stackName(home);
  const { log } = await findSchedule(word(input, 0), context);
  const record = await changeSchedule(
    log,
    (last) => (last?.state === 'active' && last.owner === stack ? undefined : { state: 'active', owner: stack }),
    new Date(),
  );
  const live = await withTemporal(home, async (ports) => ({ schedule: await liveSchedule(ports, log) }));
  const { state, nextTimes } = await scheduleSummary({ log, record }, live?.schedule, {
    stack,
    now: new Date(),
    limit: 0,
  });
  printer.data(
    { name: log.name, state, nextTimes },
    () => `schedule ${log.name} is active; its next run starts at ${showTime(nextTimes[0] ?? '')}`,
  );
  if (!printer.json && live === undefined) printer.notice('the local stack is down: nothing starts until petrel up');
  return undefined;
}
