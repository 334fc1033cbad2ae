/**
 * Whole runs in one process, without servers, in a fraction of a second: the activities that the control process runs,
 * the stages that the engine's thread runs, a folder as the store. Only the queue, Temporal and the processes of
 * scorers are left out: a job is a call, and a score is the return value of a function here.
 */
import { deepStrictEqual } from 'node:assert/strict';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createActivities } from '../activities/index.ts';
import type { ActivityPorts } from '../activities/index.ts';
import { arithmeticRows } from '../api/data/arithmetic.ts';
import { verifyLedger } from '../api/ledger/verify.ts';
import { prepareRun } from '../api/runs/prepare.ts';
import { tokenisedBy } from '../api/runs/row-tokens.ts';
import { claimNewId, withoutPaths } from '../api/runs/start.ts';
import type { Store } from '../core/ports/store.ts';
import { assertRunnable, mergeTrees, parseRecipe, teacherOf } from '../core/recipe/index.ts';
import type { Recipe, Tree } from '../core/recipe/index.ts';
import { actorOf } from '../core/records/components.ts';
import { keys } from '../core/records/keys.ts';
import { recordFormat, resultRecord } from '../core/records/schema.ts';
import type { BatchRecord, ResultRecord, RunInputs, UpdateRecord } from '../core/records/schema.ts';
import { samplesResponses } from '../core/run-kinds.ts';
import { checkJobInput } from '../core/wire/job-inputs.ts';
import type { RewardInput, RewardOutput, Stage } from '../core/wire/jobs.ts';
import { EventCounts } from '../infra/fleet/event-counts.ts';
import { jobIdOf } from '../infra/nats/dispatcher.ts';
import type { JobRequest, JobResult } from '../infra/nats/dispatcher.ts';
import { batchToAdopt } from '../infra/store/earlier-batches.ts';
import { getBlob, getJsonBlob, putBlob, putJsonBlob } from '../infra/store/blobs.ts';
import { runStateOf } from '../infra/store/digest.ts';
import { openFolderStore } from '../infra/store/folder.ts';
import { findHole } from '../infra/store/log-holes.ts';
import { needShards, putManifest } from '../infra/store/manifests.ts';
import { modelFolder } from '../infra/store/model-facts.ts';
import { writeRun } from '../infra/store/new-run.ts';
import { decide } from '../infra/store/records.ts';
import { RunLog } from '../infra/store/run-log.ts';
import { appendStatus, pausesFor } from '../infra/store/status.ts';
import { standbyStart } from '../infra/store/standby-start.ts';
import { openNextTerm } from '../infra/store/terms.ts';
import { openTokenizerThread } from '../models/tokenizer-thread.ts';
import { decodeTrajectories } from '../models/trajectories.ts';
import { withComponents } from '../rewards/components.ts';
import { toScored } from '../rewards/result.ts';
import type { ScorerInput, ScorerReturn } from '../rewards/types.ts';
import { OpenDatasets } from '../workers/datasets.ts';
import { EngineHost } from '../workers/engine/host.ts';
import type { JobContext } from '../workers/engine/host.ts';
import { runStage } from '../workers/engine/stages.ts';
import { inputsOf, scorerRows } from '../workers/reward/scoring.ts';
import { tabulate } from '../workers/reward/tabulate.ts';
import { saveRandomModel } from './random-model.ts';
import type { ModelSizes } from './random-model.ts';

const shared = '/dev/shm';

const sizes: ModelSizes = {
  hidden_size: 32,
  intermediate_size: 64,
  num_hidden_layers: 2,
  num_attention_heads: 2,
  num_key_value_heads: 2,
  vocab_size: 18,
  max_position_embeddings: 64,
};

export interface RunInProcess {
  readonly log: RunLog;
  readonly iterations: readonly { readonly batch: BatchRecord; readonly update: UpdateRecord }[];
  /** Digests of the policy's weights: of the base, then after each iteration. */
  readonly weights: readonly string[];
}

export type ScoreFunction = (input: ScorerInput) => ScorerReturn;

/** Two components, which differ between most responses, their mean, which prime takes for an accuracy, and a vote. */
const sevensAndShort: ScoreFunction = ({ solutionStr }) => {
  const sevens = [...solutionStr].filter((c) => c === '7').length / Math.max(1, solutionStr.length);
  const short = 1 / (1 + solutionStr.length);
  return { score: (sevens + short) / 2, sevens, short, pred: solutionStr.slice(0, 1) };
};

export class InProcessLoop {
  /**
   * The folder of the store: in memory, when the machine has such a folder, because a store waits for the disk at every
   * record.
   */
  readonly folder = mkdtempSync(join(existsSync(shared) ? shared : tmpdir(), 'petrel-in-process-'));
  readonly #cache = join(this.folder, 'cache');
  readonly #datasets = new OpenDatasets();
  readonly #score: ScoreFunction;
  readonly #host: EngineHost;
  readonly #jobs = new Map<string, Promise<JobResult<Stage>>>();
  #store: Store | undefined;
  #prepared: RunInputs | undefined;

  constructor(score: ScoreFunction = sevensAndShort) {
    this.#score = score;
    mkdirSync(this.#cache);
    const ticks = new Int32Array(new SharedArrayBuffer(4));
    this.#host = new EngineHost({ threads: 1, cache: this.#cache, onSaved: () => {}, ticks });
  }

  /** A model of two layers, rows of sums of digits, and a store. */
  async up(): Promise<void> {
    await saveRandomModel(this.modelFolder, sizes, 0.1);
    const options = { rows: 24, seed: 3, split: 'train', preset: 'digits', digits: 1 } as const;
    for (const [file, sft] of [
      [this.trainFile, false],
      [this.responsesFile, true],
    ] as const) {
      const more = { sft, careless: 0, dataSource: 'last_integer', exclude: new Set<string>() };
      const rows = arithmeticRows({ ...options, ...more });
      writeFileSync(file, rows.map((row) => `${JSON.stringify(row)}\n`).join(''));
    }
    const store = await openFolderStore(join(this.folder, 'store'));
    this.#store = store;
  }

  /** The model and the rows are stored once, a teacher and validation rows with each recipe that names them. */
  async #inputs(recipe: Recipe): Promise<RunInputs> {
    assertRunnable(recipe);
    const { kind, data } = recipe;
    const isUsual = kind === 'rl' && teacherOf(recipe) === undefined && data.val_files === null;
    if (isUsual && this.#prepared !== undefined) return this.#prepared;
    const ports = { store: this.store, home: this.folder, env: process.env, now: new Date(), say: () => {} };
    const { inputs } = await prepareRun(recipe, ports);
    if (isUsual) this.#prepared = inputs;
    return inputs;
  }

  get trainFile(): string {
    return join(this.folder, 'train.jsonl');
  }

  /** The same sums with their answers, for `kind: sft`. */
  get responsesFile(): string {
    return join(this.folder, 'responses.jsonl');
  }

  get modelFolder(): string {
    return join(this.folder, 'model');
  }

  get store(): Store {
    if (this.#store === undefined) throw new Error('up() comes first');
    return this.#store;
  }

  /** The small recipe with these changes: 4 prompts × 4 responses of up to 5 tokens, two iterations of two steps. */
  recipe(changes: Tree): Tree {
    const small = {
      name: 'in-process',
      model: { path: this.modelFolder },
      data: {
        train_files: this.trainFile,
        train_batch_size: 4,
        max_prompt_length: 8,
        max_response_length: 5,
      },
      rollout: { n: 4, max_num_seqs: 16 },
      actor: { ppo_mini_batch_size: 2, ppo_max_token_len_per_gpu: 64, optim: { lr: 0.003, weight_decay: 0 } },
      reward: { scorer: 'last_integer' },
      trainer: { total_training_steps: 2, save_freq: -1, val_before_train: false },
      deterministic: true,
    };
    return mergeTrees(small, changes);
  }

  /** Runs the recipe to its end; verifies its ledger with all tensors. Throws what a stage throws. */
  async completed(changes: Tree): Promise<RunInProcess> {
    const recipe = parseRecipe(this.recipe(changes));
    const inputs = await this.#inputs(recipe);
    const log = await claimNewId(this.store, { name: recipe.name, kind: recipe.kind }, new Date());
    await writeRun(log, { recipe: withoutPaths(recipe), inputs }, new Date());
    const { runId } = log;
    const activities = createActivities(this.#ports());
    const ref = { runId, store: this.store.url };
    try {
      await activities.openTerm(ref);
      for (let position = 0; position < (recipe.trainer.total_training_steps ?? 1); position++) {
        const at = { ...ref, position };
        if (samplesResponses(recipe.kind)) {
          const [rollouts, rewards] = await Promise.all([activities.rollout(at), activities.reward(at)]);
          await activities.advantage({ ...at, facts: { rollouts: rollouts.fact, rewards: rewards.fact } });
        } else await activities.advantage(at);
        await activities.update(at);
      }
      if (recipe.data.val_files !== null) await activities.evaluate(ref);
    } finally {
      this.#jobs.clear();
      await this.#host.release(runId);
    }
    const tokenise = tokenisedBy(this.store, this.#cache);
    deepStrictEqual((await verifyLedger(this.store, runId, { deep: true, tokenise })).faults, []);
    const written = new RunLog(this.store, runId);
    const iterations: RunInProcess['iterations'][number][] = [];
    for await (const { batch, update } of written.iterations())
      iterations.push({ batch: batch.record, update: update.record });
    const head = await written.head();
    if (head === undefined) throw new Error(`${runId} has no term`);
    const base = actorOf(head.termRecord.components).weightsDigest;
    const weights = [base, ...iterations.map(({ update }) => actorOf(update.components).weightsDigest)];
    return { log: written, iterations, weights };
  }

  /** Waits for the checkpoints that are still being written: the folder cannot be removed while files come into it. */
  async remove(): Promise<void> {
    await this.#host.saveLast(false);
    rmSync(this.folder, { recursive: true, force: true });
  }

  #ports(): ActivityPorts {
    const notHere = (): never => {
      throw new Error('an iteration in one process does not ask for this');
    };
    return {
      process: 'test',
      stack: 'test',
      openStore: async () => this.store,
      drivesRun: async () => true,
      findHole,
      batchToAdopt,
      openNextTerm,
      standbyStart,
      admitWork: async () => {},
      openLog: (store, runId) => new RunLog(store, runId),
      events: new EventCounts(() => 0),
      appendStatus,
      pausesFor,
      decide,
      runStateOf,
      putManifest,
      needShards,
      getBlob,
      putBlob,
      getJsonBlob,
      putJsonBlob,
      dispatcher: {
        run: (request) => this.#run(request),
        settle: notHere,
        releaseLease: notHere,
        isWanted: () => false,
        untilWanted: async () => false,
        endTurn: notHere,
        servesWeights: () => false,
        announceWeights: () => {},
        cancelJobs: notHere,
        runResumed: () => {},
      },
      jobIdOf,
      listWorkers: async () => [],
      schedules: {
        openScheduleLog: notHere,
        readModule: notHere,
        keepInputs: notHere,
        claimRun: notHere,
        writeRun: notHere,
        startRun: notHere,
        tellRun: notHere,
      },
      fleet: {
        provider: { launch: notHere, terminate: notHere, list: notHere, spotPrices: notHere, check: notHere },
        openFleet: notHere,
        prepareLaunch: notHere,
        observeRuns: notHere,
        pauseRun: notHere,
        tellToLeave: notHere,
        notePlan: notHere,
        noteTrouble: notHere,
        say: notHere,
      },
      say: () => {},
      live: () => {},
      endSweep: notHere,
      sweepStore: notHere,
      now: () => new Date(),
      beginAttempt: () => () => false,
      whileHeartbeating: (work) => work(new AbortController().signal),
    };
  }

  /** One job, once. Its result is a record, as a worker writes it. */
  #run<S extends Stage>(request: JobRequest<S>): Promise<JobResult<S>> {
    const jobId = jobIdOf(request.stage, request.input);
    const id = `${request.runId} ${jobId}`;
    const known = this.#jobs.get(id);
    const result = known ?? this.#work(request, jobId);
    this.#jobs.set(id, result);
    return result as Promise<JobResult<S>>;
  }

  async #work<S extends Stage>(request: JobRequest<S>, jobId: string): Promise<JobResult<Stage>> {
    const { stage, runId, at, store } = request;
    // As on the wire.
    const input: unknown = JSON.parse(JSON.stringify(request.input));
    checkJobInput(stage, input);
    const counts: Record<string, number> = {};
    const context: JobContext = {
      runId: runId as JobContext['runId'],
      jobId: jobId as JobContext['jobId'],
      at,
      store: store.url,
      signal: new AbortController().signal,
      throwIfCancelled: () => {},
      progress: () => {},
      say: () => {},
      count: (name, value) => void (counts[name] = value),
      publication: request.publication,
      holders: [],
      ended: () => {},
      journal: {
        entries: [],
        incarnation: 'test',
        tickMs: 60_000,
        now: () => performance.now(),
        publish: () => {},
        onLost: () => () => {},
      },
    };
    const output =
      stage === 'reward'
        ? await this.#scored(runId, input as RewardInput)
        : await runStage(this.#host, { stage, input } as Parameters<typeof runStage>[1], context);
    const record: ResultRecord = {
      format: recordFormat,
      jobId,
      stage,
      output: { ...output },
      timings: { [`timing_s/${stage}`]: 0, ...counts },
      writer: { process: 'test', at: new Date().toISOString() },
    };
    await decide(store, keys.result(runId, jobId), resultRecord, record, () => true);
    return { jobId, output, timings: record.timings };
  }

  async #scored(runId: string, input: RewardInput): Promise<RewardOutput> {
    const trajectories = decodeTrajectories(await getBlob(this.store, runId, input.trajectories), input.trajectories);
    const rows = await scorerRows(await this.#datasets.open(this.store, input.dataset), trajectories.row_S);
    const tokenizer = await openTokenizerThread(await modelFolder(this.store, input.model, this.#cache, 'text'));
    const all = Array.from(trajectories.row_S, (_, b) => b);
    const given = await inputsOf({ trajectories, rows, tokenizer }, all);
    const returned = given.map((one) => ({ ok: true, ...toScored(this.#score(one)) }) as const);
    const outcomes = withComponents(returned, input.components ?? []);
    const table = {
      trajectories: input.trajectories,
      ...tabulate(
        outcomes,
        given.map(({ dataSource }) => dataSource),
      ),
    };
    const failed = outcomes.filter(({ ok }) => !ok).length;
    return { scores: await putJsonBlob(this.store, runId, table), failed };
  }
}
