/** `petrel schedule add <recipe>`: everything that its runs will need goes into the store now. */
import { TerminalError } from '../../../core/errors.ts';
import type { Store } from '../../../core/ports.ts';
import { runIssues } from '../../../core/recipe/index.ts';
import type { Recipe } from '../../../core/recipe/index.ts';
import type { ScheduleDefinition } from '../../../core/records/schema.ts';
import { scheduleTiming } from '../../../core/schedules/request.ts';
import type { ScheduleTiming } from '../../../core/schedules/request.ts';
import { timesWithin } from '../../../core/schedules/times.ts';
import { petrelHome } from '../../../infra/home.ts';
import { stackName } from '../../../infra/stack/identity.ts';
import { putScheduleModule } from '../../../infra/store/blobs.ts';
import { ensureFences } from '../../../infra/store/fencing.ts';
import { rememberStore } from '../../../infra/store/places.ts';
import { changeSchedule, ScheduleLog } from '../../../infra/store/schedule-log.ts';
import type { CommandContext, CommandInput } from '../../command.ts';
import { flag, textOption, word } from '../../options.ts';
import { loadRecipe } from '../../recipe-file.ts';
import { recipeErrors } from '../../recipe-issues.ts';
import { poolsOf, storedInputs, withoutPaths } from '../../runs/start.ts';
import { openStoreForNew } from '../../runs/stores-away.ts';
import { listSchedules } from '../../schedules/find.ts';
import { liveSchedule, withTemporalUp } from '../../schedules/live.ts';
import { scheduleSummary } from '../../schedules/summary.ts';
import type { ScheduleSummary } from '../../schedules/summary.ts';
import { showTime } from '../../schedules/text.ts';

export async function run(input: CommandInput, context: CommandContext): Promise<undefined> {
  const { printer, env, cwd } = context;
  const now = new Date();
  const timing = scheduleTiming(requestOf(input), now);
  const name = textOption(input, 'name');
  const { recipe, layers } = loadRecipe(
    word(input, 0),
    [...input.words.slice(1), ...(name === undefined ? [] : [`name=${name}`])],
    cwd,
  );
  const problems = runIssues(recipe);
  if (problems.length > 0) throw recipeErrors(problems, layers);

  const home = petrelHome(env);
  const store = await openStoreForNew(recipe.store, home);
  const replace = flag(input, 'replace');
  await refuseTaken(recipe.name, store, replace, context);
  await ensureFences(home, store);
  const definition = await freeze({ recipe, timing, store, home, context });
  const log = new ScheduleLog(store, recipe.name);
  const record = await changeSchedule(
    log,
    (last) => {
      if (last !== undefined && last.state !== 'removed' && !replace) throw taken(recipe.name);
      return { state: last?.state === 'paused' ? 'paused' : 'active', owner: stackName(home), definition };
    },
    now,
  );
  rememberStore(home, store.url);
  const summary = await withTemporalUp(
    home,
    printer,
    async (ports) => {
      const live = await liveSchedule(ports, log);
      return scheduleSummary({ log, record }, live, { stack: ports.stack, now: new Date(), limit: 0 });
    },
    poolsOf(recipe),
  );
  printer.data(summary, () => text(summary));
  return undefined;
}

function requestOf(input: CommandInput) {
  const option = (name: string) => textOption(input, name);
  return {
    every: option('every'),
    cron: option('cron'),
    timezone: option('timezone'),
    overlap: option('overlap'),
    jitter: option('jitter'),
    until: option('until'),
    catchUp: option('catchUp'),
    backfill: option('backfill'),
  };
}

/** Told before the model and the rows are copied, too. */
async function refuseTaken(name: string, store: Store, replace: boolean, context: CommandContext): Promise<void> {
  const there = (await listSchedules(context)).find(({ log }) => log.name === name);
  if (there !== undefined && there.log.store.url !== store.url) {
    throw new TerminalError('Conflict', `there is a schedule ${name} in the store ${there.log.store.url}`, {
      hint: 'choose another name with --name',
    });
  }
  if (there !== undefined && !replace) throw taken(name);
}

function taken(name: string): TerminalError {
  return new TerminalError('Conflict', `there is a schedule ${name} already`, {
    hint: '--replace puts this one in its place; --name chooses another name',
  });
}

interface Freezing {
  readonly recipe: Recipe;
  readonly timing: ScheduleTiming;
  readonly store: Store;
  readonly home: string;
  readonly context: CommandContext;
}

async function freeze({
  recipe,
  timing,
  store,
  home,
  context: { printer, env },
}: Freezing): Promise<ScheduleDefinition> {
  const { inputs, module, notes } = await storedInputs(recipe, {
    store,
    home,
    env,
    now: new Date(timing.since),
    say: printer.notice,
  });
  if (module !== undefined) await putScheduleModule(store, recipe.name, module);
  for (const note of notes) printer.notice(note);
  return { ...timing, kind: recipe.kind, recipe: withoutPaths(recipe), inputs };
}

function text({ name, state, nextTimes, backfill, times }: ScheduleSummary): string {
  const past = backfill === null ? 0 : timesWithin(times, new Date(backfill.from), new Date(backfill.to), 1_000).length;
  return [
    state === 'paused'
      ? `schedule ${name} is paused, as it was; petrel schedule unpause ${name}`
      : `schedule ${name} starts its next run at ${showTime(nextTimes[0] ?? '')}`,
    ...(past === 0 ? [] : [`backfill: ${past} ${past === 1 ? 'run' : 'runs'}`]),
    `next: petrel schedule show ${name}; petrel schedule trigger ${name}; petrel schedule rm ${name}`,
  ].join('\n');
}
