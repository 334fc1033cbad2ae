/**
 * Shared by the tests of the run loop: the real stack with the real engine in a temporary home, a tiny model created on
 * the spot, and recipes that take seconds.
 */
import { deepStrictEqual } from 'node:assert/strict';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Client } from '@temporalio/client';
import type { NatsConnection } from '@nats-io/nats-core';
import { samplesResponses } from '../core/run-kinds.ts';
import type { RunKind } from '../core/run-kinds.ts';
import { tokenisedBy } from '../api/runs/row-tokens.ts';
import { verifyLedger } from '../api/ledger/verify.ts';
import type { LedgerFault, LedgerVerdict } from '../api/ledger/verify.ts';
import { createRun, startWorkflow } from '../api/runs/start.ts';
import type { RunId } from '../core/ids.ts';
import type { Store } from '../core/ports/store.ts';
import { mergeTrees, parseRecipe } from '../core/recipe/index.ts';
import type { Tree } from '../core/recipe/index.ts';
import { keys } from '../core/records/keys.ts';
import { statusEntry } from '../core/records/schema.ts';
import type { BatchRecord, StatusEntry, UpdateRecord } from '../core/records/schema.ts';
import type { RunState, DesiredState } from '../core/run-states.ts';
import { liveNote, liveSubject } from '../core/wire/messages.ts';
import type { LiveMessage } from '../core/wire/messages.ts';
import type { RunOutcome } from '../core/wire/workflow.ts';
import { petrelHome } from '../infra/home.ts';
import { connectNats } from '../infra/nats/connection.ts';
import { listWorkers } from '../infra/nats/jobs/presence.ts';
import { strangers } from '../infra/stack/adoption.ts';
import { drivenRuns } from '../infra/stack/driven-runs.ts';
import { ensureStack, readStack, stopStack } from '../infra/stack/index.ts';
import type { StackInfo, WorkerPool } from '../infra/stack/index.ts';
import { openStore } from '../infra/store/open.ts';
import { readRecord } from '../log/objects/records.ts';
import type { RunLog } from '../log/run/run-log.ts';
import { appendStatus } from '../log/run/status.ts';
import { readLogChunk } from '../infra/telemetry/run-log-lines.ts';
import { connectTemporalClient } from '../infra/temporal/connection.ts';
import { tellRunWorkflow } from '../infra/temporal/run-workflow.ts';
import { poll } from '../infra/poll.ts';
import { LoopInputs, tinySizes } from './loop-inputs.ts';
import type { ModelSizes } from './random-model.ts';
import { borrowHome } from './lent-homes.ts';
import type { LentHome } from './lent-homes.ts';
import { processOf } from './stack-under-test.ts';
import { temporaryHome } from './servers.ts';
import type { TemporaryHome } from './servers.ts';
import { patienceMs } from './patience.ts';

/** One worker that does everything, as on a laptop. */
export const onePool: readonly WorkerPool[] = [
  { name: 'local', count: 1, roles: ['trainer', 'rollout', 'reward'], threads: 1 },
];
/** One process per role, so that weights are transferred through the store. */
export const separatePools: readonly WorkerPool[] = [
  { name: 'train', count: 1, roles: ['trainer'], threads: 1 },
  { name: 'sample', count: 2, roles: ['rollout'], threads: 1 },
  { name: 'score', count: 1, roles: ['reward'], threads: 1 },
];

export interface StartedRun {
  readonly runId: RunId;
  readonly log: RunLog;
}

/** An iteration, from its two records. */
export interface Iteration {
  readonly batch: BatchRecord;
  readonly batchDigest: string;
  readonly update: UpdateRecord;
  readonly updateDigest: string;
}

export class LoopUnderTest {
  readonly #place: TemporaryHome | LentHome;
  readonly home: string;
  readonly inputs: LoopInputs;
  /** Runs whose ledgers must be valid at the end. A test that damages a run removes it from this list. */
  readonly runs = new Set<StartedRun>();
  readonly #driven = new Set<StartedRun>();
  #client: Client | undefined;
  #nc: NatsConnection | undefined;
  readonly #storeUrl: string;
  readonly #sizes: ModelSizes;
  #store: Store | undefined;

  /**
   * `store`: URL or folder; default: a folder in the home. `sizes`: of the model; default: tiny. `place`: the home;
   * default: a new one.
   */
  constructor(store?: string, sizes: ModelSizes = tinySizes, place: TemporaryHome | LentHome = temporaryHome()) {
    this.#place = place;
    this.home = place.home;
    // A lent home has the inputs of the loops before this one.
    this.inputs = new LoopInputs(mkdtempSync(join(this.home, 'inputs-')));
    this.#storeUrl = store ?? join(this.home, 'store');
    this.#sizes = sizes;
  }

  /**
   * A loop whose home may have a running stack, and runs of other test files. For tests that need a stack that runs,
   * and neither damage it nor give it an environment.
   */
  static onLentStack(): LoopUnderTest {
    return new LoopUnderTest(undefined, tinySizes, borrowHome('loop', join(petrelHome(), 'toolchain')));
  }

  /** The stack with these workers, a model and rows. */
  async up(pools: readonly WorkerPool[] = onePool): Promise<StackInfo> {
    if (this.#store === undefined) {
      await this.inputs.write(this.#sizes, 'arithmetic');
      this.#store = await openStore(this.#storeUrl);
    }
    const stack = await ensureStack({ home: this.home, workers: pools });
    await this.#client?.connection.close();
    this.#client = await connectTemporalClient(stack);
    await this.#nc?.close();
    this.#nc = await connectNats(stack, 'test');
    return stack;
  }

  /** The faults of every run's ledger, from the objects alone. A deleted run has none. */
  async faults(): Promise<readonly LedgerFault[]> {
    const verdicts: LedgerVerdict[] = [];
    const tokenise = tokenisedBy(this.store, join(this.home, 'cache'));
    for (const { runId } of this.runs) {
      if ((await this.store.head(keys.tombstone(runId))) === undefined)
        verdicts.push(await verifyLedger(this.store, runId, { deep: true, tokenise }));
    }
    return verdicts.flatMap(({ faults }) => faults);
  }

  /**
   * Stops everything and checks that no process is left, or gives a lent home back. Verifies every ledger of this loop.
   */
  async remove(): Promise<void> {
    await this.#client?.connection.close();
    await this.#nc?.close();
    const lent = 'giveBack' in this.#place && (await this.#isAtRest()) ? this.#place : undefined;
    if (lent === undefined) await this.#stop();
    const faults = await this.faults();
    lent?.giveBack();
    if (process.env['PETREL_KEEP'] !== undefined) console.log(`kept: ${this.home}`);
    else if ('remove' in this.#place) this.#place.remove();
    deepStrictEqual(faults, []);
  }

  async #stop(): Promise<void> {
    await stopStack(this.home);
    deepStrictEqual(strangers(this.home, []), []);
  }

  /** True when no run of this loop works or waits for a worker. */
  async #isAtRest(): Promise<boolean> {
    const entries = await Promise.all([...this.#driven].map(({ log }) => log.status.newest()));
    return entries.every((entry) => entry?.state !== 'queued' && entry?.state !== 'running');
  }

  get client(): Client {
    return present(this.#client);
  }

  get nc(): NatsConnection {
    return present(this.#nc);
  }

  get store(): Store {
    return present(this.#store);
  }

  /** Creates a scorer from the body of `computeScore({ dataSource, solutionStr, groundTruth, extraInfo })`. */
  scorer(name: string, body: string): string {
    const path = join(this.inputs.folder, `${name}.mjs`);
    writeFileSync(
      path,
      `export function computeScore({ dataSource, solutionStr, groundTruth, extraInfo }) {\n${body}\n}\n`,
    );
    return path;
  }

  /** Starts a small run: 4 prompts × 4 responses of up to 5 tokens; the reward is the share of sevens. */
  async start(overrides: Tree = {}): Promise<StartedRun> {
    const run = await this.create(overrides);
    await this.drive(run, kindOf(overrides));
    return run;
  }

  /** Does what `start` does, but resolves when the run has completed. */
  async completed(overrides: Tree = {}): Promise<StartedRun> {
    const run = await this.start(overrides);
    await this.reaches(run, 'completed');
    return run;
  }

  /** Writes the recipe of the small run to a file, for commands. */
  recipeFile(name: string, overrides: Tree = {}): string {
    const path = join(this.inputs.folder, `${name}.json`);
    writeFileSync(path, JSON.stringify(mergeTrees(this.#recipe(kindOf(overrides)), { ...overrides, name })));
    return path;
  }

  /** Creates the records of a run without starting its workflow. */
  async create(overrides: Tree = {}): Promise<StartedRun> {
    const recipe = parseRecipe(mergeTrees(this.#recipe(kindOf(overrides)), overrides));
    const ports = { store: this.store, home: this.home, env: process.env, now: new Date(), say: () => {} };
    const { runId, log } = await createRun(recipe, ports);
    const run = { runId, log };
    this.runs.add(run);
    return run;
  }

  drive(run: StartedRun, kind: RunKind = 'rl'): Promise<void> {
    this.#driven.add(run);
    return startWorkflow(this.client, this.home, { runId: run.runId, store: this.store.url }, kind);
  }

  /** Resolves with the workflow's outcome. */
  ended({ runId }: StartedRun): Promise<RunOutcome> {
    return this.client.workflow.getHandle(runId).result() as Promise<RunOutcome>;
  }

  /**
   * Does what the commands pause, stop and cancel do: records the desired state in the store, then signals the
   * workflow.
   */
  async tell({ runId, log }: StartedRun, desired: DesiredState): Promise<void> {
    await appendStatus(log, { wish: desired }, new Date());
    // The workflow may have read the record before the signal, and ended.
    await tellRunWorkflow(this.client, runId, desired);
  }

  /** Does what the command resume does. */
  async resume(run: StartedRun, kind: RunKind = 'rl'): Promise<void> {
    const paused = (await run.log.status.newest())?.state === 'paused';
    if (!paused) {
      await this.ended(run);
      await drivenRuns(this.home).noteToStart({ runId: run.runId, store: this.store.url, kind });
    }
    await appendStatus(run.log, { wish: 'run', ...(paused ? {} : { state: 'queued' as const }) }, new Date());
    await this.drive(run, kind);
    // A run that pauses or ends again at once may have no workflow any more.
    await tellRunWorkflow(this.client, run.runId, 'run');
  }

  /**
   * Resolves when the run has this state. Fails with the run's reason on a timeout, or when the run has failed instead.
   */
  async reaches(run: StartedRun, state: RunState): Promise<StatusEntry> {
    return this.until(run, `state ${state}`, async () => {
      const status = await run.log.status.newest();
      if (status?.state === 'failed' && state !== 'failed')
        throw new Error(`${run.runId} failed: ${JSON.stringify(status.reason)}`);
      return status?.state === state ? status : undefined;
    });
  }

  /** Resolves when policy version k is committed. */
  async passes(run: StartedRun, k: number): Promise<void> {
    await this.until(run, `iteration ${k}`, async () => ((await run.log.head())?.position ?? -1) >= k);
  }

  async until<T>(run: StartedRun, what: string, probe: () => Promise<T | undefined | false>): Promise<T> {
    const answer = await poll(probe, { everyMs: 50, timeoutMs: patienceMs });
    if (answer !== undefined && answer !== false) return answer;
    const workers = (await listWorkers(this.nc)).map(
      ({ worker, state, lease, jobs }) =>
        `${worker} ${state}, lease ${lease ?? 'none'}, jobs ${jobs.join(' ') || 'none'}`,
    );
    const lines = (await this.lines(run)).slice(-20);
    throw new Error(
      [
        `${run.runId} did not get to ${what}: ${JSON.stringify(await run.log.status.newest())}`,
        ...workers,
        await this.#workflowOf(run),
        ...lines,
      ].join('\n'),
    );
  }

  /** What drives a run, or why nothing does: its execution, and the activities that it waits for. */
  async #workflowOf({ runId }: StartedRun): Promise<string> {
    try {
      const { status, historyLength, raw } = await this.client.workflow.getHandle(runId).describe();
      const waiting = raw.pendingActivities?.map(
        ({ activityType, attempt, lastFailure }) =>
          `${activityType?.name}, attempt ${attempt}${lastFailure?.message ? ` after: ${lastFailure.message}` : ''}`,
      );
      const task = raw.pendingWorkflowTask ? `, workflow task, attempt ${raw.pendingWorkflowTask.attempt}` : '';
      return `workflow ${status.name}, ${historyLength} events${task}; waits for ${waiting?.join('; ') || 'nothing'}`;
    } catch (error) {
      return `workflow: ${String(error)}`;
    }
  }

  /** Live notes of a run, from this call on. */
  notes({ runId }: StartedRun): LiveMessage[] {
    const notes: LiveMessage[] = [];
    this.nc.subscribe(liveSubject(runId), {
      callback: (error, message) => {
        const note = error === null ? liveNote.safeParse(message.json()) : undefined;
        if (note?.success) notes.push(note.data);
      },
    });
    return notes;
  }

  /** All status entries of a run as `state, desired state`. The desired state `run` is left out. */
  async statuses({ runId, log }: StartedRun): Promise<string[]> {
    const newest = (await log.status.newest())?.n ?? 0;
    const entries = await Promise.all(
      Array.from({ length: newest }, (_, i) => readRecord(this.store, keys.status(runId, i + 1), statusEntry)),
    );
    return entries.map((entry) =>
      entry?.record.wish === 'run' ? entry.record.state : `${entry?.record.state}, ${entry?.record.wish}`,
    );
  }

  /** State digests of all committed iterations. */
  async states(run: StartedRun): Promise<string[]> {
    return (await this.iterations(run)).map(({ update }) => update.stateDigest);
  }

  async iterations({ log }: StartedRun): Promise<Iteration[]> {
    const found: Iteration[] = [];
    for await (const { batch, update } of log.iterations()) {
      found.push({
        batch: batch.record,
        batchDigest: batch.digest,
        update: update.record,
        updateDigest: update.digest,
      });
    }
    return found;
  }

  /** Stored log lines, in the form that users see. */
  async lines({ runId }: StartedRun): Promise<string[]> {
    const chunks = await this.store.children(keys.logs(runId));
    const lines = await Promise.all(chunks.map((chunk) => readLogChunk(this.store, runId, chunk)));
    return lines.flat().map(({ level, source, text }) => `${level} ${source}: ${text}`);
  }

  /** Resolves with the matching lines when there are any: lines are stored within a second. */
  said(run: StartedRun, pattern: RegExp): Promise<string[]> {
    return this.until(run, `a line that matches ${pattern}`, async () => {
      const found = (await this.lines(run)).filter((line) => pattern.test(line));
      return found.length > 0 ? found : undefined;
    });
  }

  supervisor() {
    return present(readStack(this.home));
  }

  /** A process of the running stack. */
  process(name: string) {
    return processOf(present(readStack(this.home)), name);
  }

  /** Undefined while it is being restarted. */
  processIfThere(name: string): ReturnType<typeof processOf> | undefined {
    const stack = readStack(this.home); // once: the next read may find it restarting
    const child = stack?.children.find((one) => one.name === name);
    return child?.pid === undefined || child.startTime === undefined ? undefined : processOf(present(stack), name);
  }

  #recipe(kind: RunKind): Tree {
    return {
      name: 'loop',
      model: { path: this.modelFolder },
      data: {
        train_files: this.inputs.rows(kind),
        train_batch_size: 4,
        max_prompt_length: 8,
        max_response_length: 5,
        max_length: 24,
      },
      rollout: { n: 4, max_num_seqs: 8 },
      actor: { ppo_mini_batch_size: 4, ppo_max_token_len_per_gpu: 64, optim: { lr: 0.003, weight_decay: 0 } },
      ...(samplesResponses(kind) && {
        reward: { custom_reward_function: { path: this.scorer('sevens', sevens), deterministic: true } },
      }),
      trainer: { total_training_steps: 3, save_freq: -1, val_before_train: false },
      deterministic: true,
    };
  }

  get modelFolder(): string {
    return this.inputs.model;
  }

  get validationPairs(): string {
    return this.inputs.validationPairs;
  }

  get validationFile(): string {
    return this.inputs.validation;
  }
}

const kindOf = ({ kind = 'rl' }: Tree): RunKind => kind as RunKind;

/** A reward that a policy with random weights learns at once. */
const sevens = `return [...solutionStr].filter((c) => c === '7').length / Math.max(1, solutionStr.length);`;

function present<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('up() comes first');
  return value;
}
