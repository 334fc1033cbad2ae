/** `petrel run <recipe> [overrides...]`: start a run and show its progress. Ctrl-C leaves it going. */
import { totalIterations } from '../../core/recipe/index.ts';
import { runIssues } from '../../core/recipe/index.ts';
import type { Recipe } from '../../core/recipe/index.ts';
import type { RunState } from '../../core/records/schema.ts';
import { petrelHome } from '../../infra/home.ts';
import { connectNats } from '../../infra/nats/connection.ts';
import { noteDrivenRun } from '../../infra/stack/driven-runs.ts';
import { ensureStack } from '../../infra/stack/index.ts';
import type { StackInfo } from '../../infra/stack/index.ts';
import { rememberStore } from '../../infra/store/places.ts';
import { connectTemporalClient } from '../../infra/temporal/connection.ts';
import type { CommandContext, CommandInput } from '../command.ts';
import { EXIT, exitCodeOfState } from '../exit-codes.ts';
import type { ExitCode } from '../exit-codes.ts';
import { flag, textOption, word } from '../options.ts';
import { createLiveDisplay } from '../printer/live.ts';
import type { Printer } from '../printer/printer.ts';
import { recipeErrors } from '../recipe-issues.ts';
import { loadRecipe } from '../recipe-file.ts';
import { createRun, poolsOf, startWorkflow } from '../runs/start.ts';
import type { Started } from '../runs/start.ts';
import { sayOutcome } from '../runs/outcome.ts';
import { watchRun } from '../runs/watch.ts';
import { openStoreForNew } from '../runs/stores-away.ts';

export async function run(input: CommandInput, context: CommandContext): Promise<ExitCode | undefined> {
  const { printer, env, cwd } = context;
  const name = textOption(input, 'name');
  const loaded = loadRecipe(
    word(input, 0),
    [...input.words.slice(1), ...(name === undefined ? [] : [`name=${name}`])],
    cwd,
  );
  const problems = runIssues(loaded.recipe);
  if (problems.length > 0) throw recipeErrors(problems, loaded.layers);

  const home = petrelHome(env);
  const store = await openStoreForNew(loaded.recipe.store, home);
  const started = await createRun(loaded.recipe, {
    store,
    home,
    env,
    now: new Date(),
    say: (text) => printer.notice(text),
  });
  rememberStore(home, store.url);
  // From now on it is begun by this stack, whatever becomes of this process.
  noteDrivenRun(home, { runId: started.runId, store: store.url, kind: loaded.recipe.kind });
  printer.notice(`run ${started.runId}`);
  for (const note of started.notes) printer.notice(note);
  const stack = await begin(started, loaded.recipe, home, printer).catch((error: unknown) => {
    printer.notice(
      `${started.runId} is written down and begins when the stack is up. To drop it: petrel cancel ${started.runId}`,
    );
    throw error;
  });
  if (!flag(input, 'detach'))
    return follow({ started, recipe: loaded.recipe, stack, context, stay: flag(input, 'wait') });
  printer.data({ runId: started.runId }, () => started.runId);
  return EXIT.ok;
}

/** Brings the stack up and starts the workflow, if the stack has not done so by its note: such a run may have ended by now. */
async function begin({ runId, log }: Started, recipe: Recipe, home: string, printer: Printer): Promise<StackInfo> {
  const pools = poolsOf(recipe);
  const stack = await ensureStack({
    home,
    ...(pools && { workers: pools }),
    onProgress: (line) => printer.notice(line),
  });
  if ((await log.status())?.state !== 'queued') return stack;
  const client = await connectTemporalClient(stack);
  try {
    await startWorkflow(client, home, { runId, store: log.store.url }, recipe.kind);
  } finally {
    await client.connection.close();
  }
  return stack;
}

/** States that a run does not leave by itself. */
const ended: readonly RunState[] = ['completed', 'stopped', 'failed', 'cancelled'];

interface Following {
  readonly started: Started;
  readonly recipe: Recipe;
  readonly stack: StackInfo;
  readonly context: CommandContext;
  /** Stay to the end, and leave with a code that tells how it ended. */
  readonly stay: boolean;
}

async function follow({ started, recipe, stack, context, stay }: Following): Promise<ExitCode> {
  const { printer } = context;
  const leave = new AbortController();
  let detached = false;
  const onInterrupt = () => {
    detached = true;
    leave.abort();
  };
  process.once('SIGINT', onInterrupt);
  const nc = await connectNats(stack, 'cli');
  try {
    const { inputs } = await started.log.revision();
    await watchRun({
      log: started.log,
      iterations: totalIterations(recipe, inputs.trainRows),
      nc,
      display: createLiveDisplay(printer, Date.now),
      now: Date.now,
      signal: leave.signal,
      onState: (state: RunState) => {
        if (ended.includes(state) || (state === 'paused' && stay)) leave.abort();
      },
    });
  } finally {
    process.removeListener('SIGINT', onInterrupt);
    await nc.close();
  }
  if (detached) {
    printer.notice(
      `${started.runId} goes on. Follow it: petrel status ${started.runId} --watch; stop it: petrel stop ${started.runId}`,
    );
    return EXIT.ok;
  }
  await sayOutcome(started.log, printer);
  const state = (await started.log.status())?.state ?? 'running';
  return stay || state !== 'completed' ? exitCodeOfState(state) : EXIT.ok;
}
