/** Starts a run: stores its inputs, claims its id, brings the stack up and starts the workflow. */
import { randomBytes } from 'node:crypto';
import type { Client } from '@temporalio/client';
import type { RunKind } from '../../core/run-kinds.ts';
import { TerminalError } from '../../core/errors.ts';
import { makeRunId } from '../../core/ids.ts';
import type { RunId } from '../../core/ids.ts';
import type { Store } from '../../core/ports/store.ts';
import type { Recipe } from '../../core/recipe/index.ts';
import type { RunRecord } from '../../core/records/schema.ts';
import type { RunCarry } from '../../core/wire/workflow.ts';
import { drivenRuns } from '../../infra/stack/driven-runs.ts';
import { keepInputs } from '../../log/retention/inputs.ts';
import {
  chooseStack,
  claimName,
  defaultPools,
  ensureStack,
  replaceOtherBuild,
  requireSetUp,
} from '../../infra/stack/index.ts';
import type { StackInfo, WorkerPool } from '../../infra/stack/index.ts';
import { claimRun, writeRun } from '../../log/run/new-run.ts';
import { RunLog } from '../../log/run/run-log.ts';
import { startRunWorkflow } from '../../infra/temporal/run-workflow.ts';
import { rememberStore } from '../../infra/store/places.ts';
import { connectTemporalClient } from '../../infra/temporal/connection.ts';
import { retry } from '../../infra/poll.ts';
import type { ApiContext } from '../context.ts';
import { beginMetricsFile } from './metrics-file.ts';
import { storeForNewRun } from '../stores/new-store.ts';
import { admitToFleet } from '../fleet/admit.ts';
import { prepareRun } from './prepare.ts';
import type { Prepared } from './prepare.ts';
import type { PreparePorts } from '../inputs/prepare-ports.ts';

export interface Started {
  readonly runId: RunId;
  readonly log: RunLog;
  readonly notes: readonly string[];
}

export interface StartedRun extends Started {
  readonly stack: StackInfo;
}

/**
 * Starts a run: stores its model, rows and scorer, claims its id, brings the stack up and starts the workflow. Once its
 * records are written, the stack starts it even when this process dies. Throws InvalidInputError before anything is
 * claimed, TerminalError `Conflict` when another stack has this
 * one's name.
 */
export async function startRun(recipe: Recipe, context: ApiContext): Promise<StartedRun> {
  const { home, env, notice } = context;
  requireSetUp(home);
  await chooseStack(home);
  for (const note of await admitToFleet(recipe, home)) notice(note);
  await replaceOtherBuild({ home, onProgress: notice });
  const store = await storeForNewRun(recipe.store, home);
  await claimName(home, store);
  const started = await createRun(recipe, { store, home, env, now: new Date(), say: notice });
  rememberStore(home, store.url);
  await drivenRuns(home).note({ runId: started.runId, store: store.url, kind: recipe.kind });
  notice(`run ${started.runId}`);
  for (const note of started.notes) notice(note);
  await beginMetricsFile(started.log, context);
  try {
    return { ...started, stack: await begin(started, recipe, context) };
  } catch (error) {
    notice(
      `${started.runId} is written down and begins when the stack is up. To drop it: petrel cancel ${started.runId}`,
    );
    throw error;
  }
}

/**
 * Brings the stack up and starts the workflow, unless the control process has done so after it read the note. Such a
 * run may even have ended by now.
 */
async function begin({ runId, log }: Started, recipe: Recipe, { home, notice }: ApiContext): Promise<StackInfo> {
  const pools = poolsOf(recipe);
  const stack = await ensureStack({ home, ...(pools && { workers: pools }), onProgress: notice });
  if ((await log.status.newest())?.state !== 'queued') return stack;
  const client = await connectTemporalClient(stack);
  try {
    await startWorkflow(client, home, { runId, store: log.store.url }, recipe.kind);
  } finally {
    await client.connection.close();
  }
  return stack;
}

/** Writes all records and starts nothing. Throws InvalidInputError before anything is claimed. */
export async function createRun(recipe: Recipe, ports: PreparePorts): Promise<Started> {
  const prepared = await storedInputs(recipe, ports);
  const log = await claimNewId(ports.store, { name: recipe.name, kind: recipe.kind }, ports.now);
  await writeRun(log, { recipe: withoutPaths(recipe), ...prepared }, ports.now);
  return { runId: log.runId, log, notes: prepared.notes };
}

/** Stores the inputs, and pins them so that the janitor keeps them until a run or a schedule names them. */
export async function storedInputs(recipe: Recipe, ports: PreparePorts): Promise<Prepared> {
  for (;;) {
    const prepared = await prepareRun(recipe, ports);
    if (await keepInputs(ports.store, prepared.inputs)) return prepared;
  }
}

/** Each attempt uses a new nonce, because an existing id belongs to another run. */
export async function claimNewId(
  store: Store,
  { name, kind, origin }: Pick<RunRecord, 'name' | 'kind' | 'origin'>,
  now: Date,
): Promise<RunLog> {
  for (let attempt = 0; attempt < 5; attempt++) {
    const log = new RunLog(store, makeRunId(name, now, randomBytes(2).toString('hex')));
    if (await claimRun(log, { name, kind, createdAt: now.toISOString(), ...(origin && { origin }) })) return log;
  }
  throw new TerminalError('Conflict', `could not claim an id for ${name}`);
}

/** Records hold digests and never paths of this machine: each path is replaced by its file name. */
export function withoutPaths(recipe: Recipe): Record<string, unknown> {
  const name = (path: string) => (path.startsWith('/') ? `./${path.slice(path.lastIndexOf('/') + 1)}` : path);
  const names = (files: string | readonly string[]) => (typeof files === 'string' ? name(files) : files.map(name));
  const { custom_reward_function: custom, reward_model: model } = recipe.reward;
  const { teacher_model: teacher } = recipe.distillation;
  return {
    ...recipe,
    store: null,
    model: {
      ...recipe.model,
      path: name(recipe.model.path),
      tokenizer_path: recipe.model.tokenizer_path && name(recipe.model.tokenizer_path),
      lora_adapter_path: recipe.model.lora_adapter_path && name(recipe.model.lora_adapter_path),
    },
    data: {
      ...recipe.data,
      train_files: names(recipe.data.train_files),
      val_files: recipe.data.val_files && names(recipe.data.val_files),
    },
    actor: {
      ...recipe.actor,
      policy_loss: { ...recipe.actor.policy_loss, loss_mode: name(recipe.actor.policy_loss.loss_mode) },
    },
    algorithm: { ...recipe.algorithm, adv_estimator: name(recipe.algorithm.adv_estimator) },
    distillation: {
      ...recipe.distillation,
      teacher_model: { model_path: teacher.model_path && name(teacher.model_path) },
    },
    reward: {
      ...recipe.reward,
      custom_reward_function: {
        ...custom,
        path: custom.path && name(custom.path),
        requirements: custom.requirements && name(custom.requirements),
      },
      reward_model: { ...model, path: model.path && name(model.path) },
    },
  };
}

/**
 * Notes that this stack drives the run, then starts its workflow or joins the running one. The call is repeated when
 * the Temporal server dies during it.
 */
export async function startWorkflow(client: Client, home: string, carry: RunCarry, kind: RunKind): Promise<void> {
  await drivenRuns(home).note({ ...carry, kind });
  const deadline = Date.now() + startTimeoutMs;
  await retry(
    async () => ({ started: await client.withDeadline(deadline, () => startRunWorkflow(client, carry, kind)) }),
    { everyMs: 250, timeoutMs: startTimeoutMs },
  );
}

/** Once the note exists, the control process starts the workflow as soon as the server is back. */
const startTimeoutMs = 20_000;

/** The pools that a recipe asks for. Undefined when it asks for none: the stack keeps its own. */
export function poolsOf(recipe: Recipe): WorkerPool[] | undefined {
  const pools = Object.entries(recipe.fleet.pools).map(([name, { roles, workers, threads }]) => ({
    name,
    count: workers,
    roles: [...roles],
    ...(threads === null ? {} : { threads }),
  }));
  return JSON.stringify(pools) ===
    JSON.stringify(defaultPools.map(({ name, count, roles }) => ({ name, count, roles })))
    ? undefined
    : pools;
}
