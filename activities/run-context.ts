/** What every stage of a run needs again and again: its log, recipe and settings. Parsed once per revision. */
import { parseRecipe } from '../core/recipe/index.ts';
import type { Recipe } from '../core/recipe/index.ts';
import { totalIterations } from '../core/recipe/index.ts';
import type { Draw } from '../core/rl/draws.ts';
import { drawsFrom } from '../core/rl/draws.ts';
import type { Writer } from '../core/records/schema.ts';
import type { RevisionRecord, RunInputs } from '../core/records/schema.ts';
import type { RunLog } from '../infra/store/run-log.ts';
import type { ActivityPorts } from './ports.ts';

/** Which run, as activities are told. */
export interface RunRef {
  readonly runId: string;
  readonly store: string;
}

export interface RunContext {
  readonly log: RunLog;
  readonly recipe: Recipe;
  readonly revision: RevisionRecord;
  readonly inputs: RunInputs;
  readonly iterations: number;
  /** The draws of a training batch that starts at this cursor. */
  readonly draws: (cursor: number) => readonly Draw[];
}

export class RunContexts {
  readonly #ports: ActivityPorts;
  readonly #known = new Map<string, RunContext>();

  constructor(ports: ActivityPorts) {
    this.#ports = ports;
  }

  /** The newest revision when `fresh`; otherwise the one that is known. */
  async get(ref: RunRef, fresh = false): Promise<RunContext> {
    const known = this.#known.get(ref.runId);
    if (known !== undefined && !fresh) return known;
    const log = this.#ports.openLog(await this.#ports.openStore(ref.store), ref.runId);
    const revision = await log.revision();
    const context = makeContext(log, revision);
    this.#known.set(ref.runId, context);
    return context;
  }

  forget(runId: string): void {
    this.#known.delete(runId);
  }
}

function makeContext(log: RunLog, revision: RevisionRecord): RunContext {
  const recipe = parseRecipe(revision.recipe);
  const { inputs } = revision;
  const stream = { rows: inputs.trainRows, seed: recipe.data.seed ?? recipe.seed, shuffle: recipe.data.shuffle };
  return {
    log,
    recipe,
    revision,
    inputs,
    iterations: totalIterations(recipe, inputs.trainRows),
    draws: (cursor) => drawsFrom(stream, cursor, recipe.data.train_batch_size),
  };
}

export function writerOf(ports: ActivityPorts): Writer {
  return { process: ports.process, at: ports.now().toISOString() };
}
