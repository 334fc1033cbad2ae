/** A stack and its runs, as objects for programs. */
import { mkdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { runIssues } from '../core/recipe/index.ts';
import type { ApiContext } from './context.ts';
import { collectGarbage } from './garbage.ts';
import type { GarbageRequest, StoreSweep } from './garbage.ts';
import { petrelHome } from './home.ts';
import { planRun } from './plan/plan.ts';
import type { PlanReport } from './plan/report.ts';
import { loadRecipe } from './recipes/recipe-file.ts';
import type { LoadedRecipe } from './recipes/recipe-file.ts';
import { recipeErrors } from './recipes/recipe-issues.ts';
import { Run } from './run.ts';
import { findRun, listRunIds, openKnownStores, openRun } from './stores/find.ts';
import { startRun } from './runs/start.ts';
import { startStack, stopStack } from './stack.ts';

export interface StackOptions {
  /** PETREL_HOME of the stack; `~/.petrel` unless given. */
  readonly home?: string | undefined;
  /** The folder that relative paths are read from; the process's working folder unless given. */
  readonly cwd?: string;
  /** Variables for the hub and S3 clients and for `env:NAME` in recipes. None unless given; usually `process.env`. */
  readonly env?: NodeJS.ProcessEnv;
  /** Takes sentences for people, such as which process starts. */
  readonly notice?: (text: string) => void;
}

/** A recipe file (or the folder of one, or an example's name) and `key=value` overrides. */
export interface RecipeRequest {
  readonly recipe: string;
  readonly overrides?: readonly string[];
}

/** The stack of this machine. Nothing is started before something needs it. */
export function openStack(options: StackOptions = {}): Stack {
  const home = resolve(options.home ?? join(homedir(), '.petrel'));
  mkdirSync(home, { recursive: true, mode: 0o700 });
  return new Stack({
    home: petrelHome({ PETREL_HOME: home }),
    cwd: resolve(options.cwd ?? '.'),
    env: options.env ?? {},
    notice: options.notice ?? (() => undefined),
  });
}

export class Stack {
  /** What the functions of the package take, such as `listSchedules(stack.context)`. */
  readonly context: ApiContext;

  constructor(context: ApiContext) {
    this.context = context;
  }

  /** Checks a recipe as `petrel plan` does; starts nothing. Throws InvalidInputError for a recipe that is none. */
  plan(request: RecipeRequest): Promise<PlanReport> {
    return planRun(this.#load(request), this.context);
  }

  /** Starts a run. The run continues when this process ends. Throws InvalidInputError before anything is written. */
  async start(request: RecipeRequest): Promise<Run> {
    const { recipe, layers } = this.#load(request);
    const problems = runIssues(recipe);
    if (problems.length > 0) throw recipeErrors(problems, layers);
    const { runId, log } = await startRun(recipe, this.context);
    return new Run({ runId, log, record: await log.run() }, this.context);
  }

  /** A run by its id, or the newest of a name. Throws TerminalError `NotFound`. */
  async run(idOrName: string): Promise<Run> {
    return new Run(await findRun(idOrName, this.context), this.context);
  }

  /** Every run of the stores that this machine knows, newest first. */
  async *runs(): AsyncGenerator<Run> {
    const { home, notice } = this.context;
    for (const listed of await listRunIds(await openKnownStores(home, notice))) {
      const found = await openRun(listed);
      if (found !== undefined) yield new Run(found, this.context);
    }
  }

  /** Removes what no run needs any more: `petrel gc`. */
  collectGarbage(request: GarbageRequest): Promise<StoreSweep[]> {
    return collectGarbage(request, this.context);
  }

  /** Starts the servers and workers, or leaves those that run as they are. */
  async up(): Promise<void> {
    await startStack(this.context);
  }

  /** Stops the servers and workers. Runs continue at the next `up`. */
  async down(): Promise<void> {
    await stopStack(this.context.home);
  }

  #load({ recipe, overrides = [] }: RecipeRequest): LoadedRecipe {
    return loadRecipe(recipe, overrides, this.context.cwd);
  }
}
