/**
 * `petrel plan --measure`: a few iterations on this machine, in a home and a store of their own that are removed
 * afterwards. The first iteration loads the model and is not counted.
 */
import { mkdtemp, rm, symlink } from 'node:fs/promises';
import { existsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { TerminalError } from '../../core/errors.ts';
import { batchArithmetic, parseRecipe } from '../../core/recipe/index.ts';
import type { Recipe } from '../../core/recipe/index.ts';
import type { ApiContext } from '../context.ts';
import { followRun } from '../runs/follow.ts';
import { metricRows, metricValue } from '../runs/metric-rows.ts';
import type { MetricRow } from '../runs/metric-rows.ts';
import type { RunLog } from '../stores/find.ts';
import { startRun } from '../runs/start.ts';
import { stopStack } from '../stack.ts';

/** What was measured, and what follows for the recipe as it is. */
export interface Measured {
  /** Responses (rl) or rows (sft) of a measured iteration. */
  readonly responses: number;
  /** Seconds of a measured iteration. */
  readonly seconds: number;
  /** Prompt and response tokens trained on, per second of the iteration. */
  readonly tokensPerSecond: number;
  /** Seconds of an iteration of the whole batch: the measured one, times how many more responses it has. */
  readonly iterationSeconds: number;
  /** Seconds of all iterations, without checkpoints and validations; null when their number is not known. */
  readonly runSeconds: number | null;
}

/** Enough to fill the slots of a small machine. */
const mostResponses = 64;
const measuredIterations = 2;

/** `iterations` of the whole run; null: not known. undefined when the signal came, after the clean-up. */
export async function measure(
  recipe: Recipe,
  iterations: number | null,
  context: ApiContext,
  signal: AbortSignal,
): Promise<Measured | undefined> {
  const home = await mkdtemp(join(tmpdir(), 'petrel-measure-'));
  try {
    for (const shared of ['toolchain', 'hub'].filter((name) => existsSync(join(context.home, name))))
      await symlink(join(context.home, shared), join(home, shared));
    const own = { ...context, home, notice: () => undefined };
    context.notice(`measuring ${measuredIterations} small iterations on a stack of their own`);
    const small = smallRecipe(recipe);
    const { log } = await startRun(small, own);
    await untilEnded(log, own, signal);
    if (signal.aborted) return undefined;
    return measuredOf(await metricRows(log), small, recipe, iterations);
  } finally {
    await stopStack(home);
    await rm(home, { recursive: true, force: true, maxRetries: 3 });
  }
}

/** The same model, lengths and sampling; fewer prompts, no validation, and nothing kept. */
function smallRecipe(recipe: Recipe): Recipe {
  const { responsesPerPrompt } = batchArithmetic(recipe);
  const prompts = Math.min(recipe.data.train_batch_size, Math.max(1, Math.floor(mostResponses / responsesPerPrompt)));
  return parseRecipe({
    ...recipe,
    name: 'measure',
    store: null,
    data: { ...recipe.data, train_batch_size: prompts, val_files: null },
    actor: { ...recipe.actor, ppo_mini_batch_size: Math.min(recipe.actor.ppo_mini_batch_size, prompts) },
    trainer: {
      ...recipe.trainer,
      total_training_steps: 1 + measuredIterations,
      save_freq: -1,
      test_freq: -1,
      val_before_train: false,
    },
  });
}

async function untilEnded(log: RunLog, context: ApiContext, signal: AbortSignal): Promise<void> {
  const paused = new AbortController();
  let why = '';
  const state = await followRun(log, context, {
    signal: AbortSignal.any([paused.signal, signal]),
    onProgress: () => undefined,
    onState: (now, reason) => {
      why = reason?.message ?? '';
      if (now === 'paused') paused.abort();
    },
  });
  if (state !== 'completed' && !signal.aborted)
    throw new TerminalError('NotMeasured', `the measured iterations are ${state}: ${why}`);
}

function measuredOf(rows: readonly MetricRow[], small: Recipe, recipe: Recipe, iterations: number | null): Measured {
  const counted = rows.filter(({ iteration }) => iteration > 1);
  const responses = batchArithmetic(small).responses;
  const mean = (name: string) =>
    counted.reduce((sum, row) => sum + Number(metricValue(row, name) ?? 0), 0) / counted.length;
  const seconds = mean('timing_s/step');
  const iterationSeconds = (seconds * batchArithmetic(recipe).responses) / responses;
  return {
    responses,
    seconds,
    tokensPerSecond: mean('perf/total_num_tokens') / seconds,
    iterationSeconds,
    runSeconds: iterations === null ? null : iterations * iterationSeconds,
  };
}
