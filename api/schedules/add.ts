/** Adding a schedule: everything that its runs will need goes into the store now. */
import { TerminalError } from '../../core/errors.ts';
import type { Store } from '../../core/ports/store.ts';
import type { Recipe } from '../../core/recipe/index.ts';
import type { ScheduleDefinition } from '../../core/records/schema.ts';
import type { ScheduleTiming } from '../../core/schedules/request.ts';
import { chooseStack, claimName, stackName } from '../../infra/stack/index.ts';
import { putScheduleModule } from '../../log/objects/blobs.ts';
import { ensureFences } from '../../infra/store/fencing.ts';
import { rememberStore } from '../../infra/store/places.ts';
import { changeSchedule, ScheduleLog } from '../../log/schedules/schedule-log.ts';
import type { ApiContext } from '../context.ts';
import { poolsOf, storedInputs, withoutPaths } from '../runs/start.ts';
import { openStoreForNew } from '../stores/stores-away.ts';
import { listSchedules } from './find.ts';
import { liveSchedule, withTemporalUp } from './temporal.ts';
import { scheduleSummary } from './summary.ts';
import type { ScheduleSummary } from './summary.ts';

export interface ScheduleRequest {
  readonly recipe: Recipe;
  readonly timing: ScheduleTiming;
  /** Puts this one in the place of a schedule of the same name. */
  readonly replace?: boolean;
}

/** The schedule's name is the recipe's. Throws TerminalError `Conflict` when there is one of that name already. */
export async function addSchedule(
  { recipe, timing, replace = false }: ScheduleRequest,
  context: ApiContext,
): Promise<ScheduleSummary> {
  const { home } = context;
  await chooseStack(home);
  const store = await openStoreForNew(recipe.store, home);
  await refuseTaken(recipe.name, store, replace, context);
  await ensureFences(home, store);
  await claimName(home, store);
  const definition = await freeze(recipe, timing, store, context);
  const log = new ScheduleLog(store, recipe.name);
  const record = await changeSchedule(
    log,
    (last) => {
      if (last !== undefined && last.state !== 'removed' && !replace) throw taken(recipe.name);
      return { state: last?.state === 'paused' ? 'paused' : 'active', owner: stackName(home), definition };
    },
    new Date(),
  );
  rememberStore(home, store.url);
  return withTemporalUp(
    context,
    async (ports) => {
      const live = await liveSchedule(ports, log);
      return scheduleSummary({ log, record }, live, { stack: ports.stack, now: new Date(), limit: 0 });
    },
    poolsOf(recipe),
  );
}

/** Told before the model and the rows are copied, too. */
async function refuseTaken(name: string, store: Store, replace: boolean, context: ApiContext): Promise<void> {
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
    hint: '--replace replaces it; --name chooses another name',
  });
}

async function freeze(
  recipe: Recipe,
  timing: ScheduleTiming,
  store: Store,
  { home, env, notice }: ApiContext,
): Promise<ScheduleDefinition> {
  const ports = { store, home, env, now: new Date(timing.since), say: notice };
  const { inputs, modules, notes } = await storedInputs(recipe, ports);
  for (const module of modules) await putScheduleModule(store, recipe.name, module);
  for (const note of notes) notice(note);
  return { ...timing, kind: recipe.kind, recipe: withoutPaths(recipe), inputs };
}
