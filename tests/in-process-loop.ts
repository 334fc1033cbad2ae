/**
 * Whole runs in one process, without servers, in a fraction of a second: the activities that the control process runs,
 * the stages that the engine's thread runs, a folder as the store. Only the queue, Temporal and the processes of
 * scorers are left out: a job is a call (in-process-worker.ts), and a score is the return value of a function.
 */
import { deepStrictEqual } from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { createActivities } from '../activities/index.ts';
import type { Activities, RunRef } from '../activities/index.ts';
import { verifyLedger } from '../api/ledger/verify.ts';
import { createFork, originAt } from '../api/runs/fork.ts';
import { engineCheck } from '../api/checks/engine-check.ts';
import { startChecks } from '../api/checks/start-checks.ts';
import { prepareRun } from '../api/runs/prepare.ts';
import { tokenisedBy } from '../api/runs/row-tokens.ts';
import { claimNewId, withoutPaths } from '../api/runs/start.ts';
import { TerminalError } from '../core/errors.ts';
import type { Store } from '../core/ports/store.ts';
import { outOfDateType } from '../core/wire/workflow.ts';
import { assertRunnable, mergeTrees, parseRecipe, parseStoredRecipe } from '../core/recipe/index.ts';
import type { Recipe, Tree } from '../core/recipe/index.ts';
import { actorOf } from '../core/records/components.ts';
import type { BatchRecord, RunInputs, UpdateRecord } from '../core/records/schema.ts';
import { samplesResponses } from '../core/run-kinds.ts';
import type { RunKind } from '../core/run-kinds.ts';
import { openFolderStore } from '../infra/store/folder.ts';
import { writeRun } from '../log/run/new-run.ts';
import { RunLog } from '../log/run/run-log.ts';
import { portsInProcess } from './in-process-ports.ts';
import { InProcessWorker } from './in-process-worker.ts';
import type { ScoreFunction, WorkerOptions } from './in-process-worker.ts';
import { LoopInputs, tinySizes } from './loop-inputs.ts';
import { quickFolder } from './quick-folder.ts';
import type { ModelSizes } from './random-model.ts';

export type { ScoreFunction } from './in-process-worker.ts';

export interface RunInProcess {
  readonly log: RunLog;
  readonly iterations: readonly { readonly batch: BatchRecord; readonly update: UpdateRecord }[];
  /** Digests of the policy's weights: of the base, then after each iteration. */
  readonly weights: readonly string[];
  /** Lines that users see, each after its level. */
  readonly said: readonly string[];
}

export interface RunOptions {
  /** Default: the scorer of the loop. */
  readonly score?: ScoreFunction;
  /** Called after each iteration. */
  readonly committed?: (position: number) => Promise<void>;
  /** Called when the batch after this position is committed, before its update. */
  readonly batchMade?: (position: number) => Promise<void>;
}

/** Two components, which differ between most responses, their mean, which prime takes for an accuracy, and a vote. */
const sevensAndShort: ScoreFunction = ({ solutionStr }) => {
  const sevens = shareOfSevens(solutionStr);
  const short = 1 / (1 + solutionStr.length);
  return { score: (sevens + short) / 2, sevens, short, pred: solutionStr.slice(0, 1) };
};

const shareOfSevens = (text: string): number => [...text].filter((c) => c === '7').length / Math.max(1, text.length);

/** A reward that a policy with random weights learns at once. */
export const sevens: ScoreFunction = ({ solutionStr }) => shareOfSevens(solutionStr);

export class InProcessLoop {
  /**
   * The folder of the store: in memory, when the machine has such a folder, because a store waits for the disk at every
   * record.
   */
  readonly folder = mkdtempSync(join(quickFolder(), 'petrel-in-process-'));
  readonly inputs = new LoopInputs(join(this.folder, 'inputs'));
  readonly #cache = join(this.folder, 'cache');
  readonly #score: ScoreFunction;
  readonly #worker: InProcessWorker;
  readonly #hasOwnEngines: boolean;
  readonly #prepared = new Map<string, RunInputs>();
  #store: Store | undefined;

  /** `options.engines`: recipes may name them although petrel has none of this name. */
  constructor(score: ScoreFunction = sevensAndShort, options: WorkerOptions = {}) {
    this.#score = score;
    mkdirSync(this.#cache);
    this.#worker = new InProcessWorker(this.#cache, options);
    this.#hasOwnEngines = options.engines !== undefined;
  }

  /** A model of two layers, rows of sums of digits, and a store. */
  async up(sizes: ModelSizes = tinySizes): Promise<void> {
    await this.inputs.write(sizes, 'last_integer');
    this.#store = await openFolderStore(join(this.folder, 'store'));
  }

  get modelFolder(): string {
    return this.inputs.model;
  }

  get store(): Store {
    if (this.#store === undefined) throw new Error('up() comes first');
    return this.#store;
  }

  /** The small recipe with these changes: 4 prompts × 4 responses of up to 5 tokens, two iterations of two steps. */
  recipe(changes: Tree): Tree {
    const kind = (changes['kind'] ?? 'rl') as RunKind;
    const small = {
      name: 'in-process',
      model: { path: this.modelFolder },
      data: {
        train_files: this.inputs.rows(kind),
        train_batch_size: 4,
        max_prompt_length: 8,
        max_response_length: 5,
        max_length: 24,
      },
      rollout: { n: 4, max_num_seqs: 16 },
      actor: { ppo_mini_batch_size: 2, ppo_max_token_len_per_gpu: 64, optim: { lr: 0.003, weight_decay: 0 } },
      ...(samplesResponses(kind) && { reward: { scorer: 'last_integer' } }),
      trainer: { total_training_steps: 2, save_freq: -1, val_before_train: false },
      deterministic: true,
    };
    return mergeTrees(small, changes);
  }

  /** Writes the records of a run. Throws what refuses its recipe. */
  async create(changes: Tree): Promise<RunLog> {
    const recipe = parseRecipe(this.recipe(changes));
    const inputs = await this.#inputsOf(recipe);
    const log = await claimNewId(this.store, { name: recipe.name, kind: recipe.kind }, new Date());
    await writeRun(log, { recipe: withoutPaths(recipe), inputs }, new Date());
    return log;
  }

  /** Runs the recipe to its end; verifies its ledger with all tensors. Throws what a stage throws. */
  async completed(changes: Tree = {}, options: RunOptions = {}): Promise<RunInProcess> {
    return this.driven(await this.create(changes), options);
  }

  /** A fork of a run after one of its iterations, run to its end. */
  async forkedAfter({ log }: Pick<RunInProcess, 'log'>, iteration: number): Promise<RunInProcess> {
    const { runId } = log;
    const found = { runId, log, record: await log.run() };
    const origin = await originAt(found, iteration);
    const fork = await createFork(found, origin, await log.revision(1), undefined, new Date());
    return this.driven(fork.log);
  }

  /** Drives a created run to its end. */
  async driven(log: RunLog, { score = this.#score, ...called }: RunOptions = {}): Promise<RunInProcess> {
    const said: string[] = [];
    const ports = portsInProcess(
      this.store,
      (request) => this.#worker.run(request, score),
      (line) => void said.push(line),
      this.#hasOwnEngines,
    );
    const { kind } = parseStoredRecipe((await log.revision()).recipe);
    try {
      await drive(createActivities(ports), { runId: log.runId, store: this.store.url }, kind, called);
    } finally {
      await this.#worker.release(log.runId);
    }
    return { ...(await this.#read(log.runId)), said };
  }

  /** Waits for the checkpoints that are still being written: the folder cannot be removed while files come into it. */
  async remove(): Promise<void> {
    await this.#worker.close();
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** Stores what these keys name once. */
  async #inputsOf(recipe: Recipe): Promise<RunInputs> {
    if (!this.#hasOwnEngines) assertRunnable(recipe);
    const { kind, deterministic, model, data, distillation, reward } = recipe;
    const key = JSON.stringify({ kind, deterministic, model, data, distillation, reward });
    const known = this.#prepared.get(key);
    if (known !== undefined) return known;
    const ports = { store: this.store, home: this.folder, env: process.env, now: new Date(), say: () => {} };
    // Its engines are those of its worker, whatever is installed here.
    const checks = startChecks.filter((check) => !this.#hasOwnEngines || check !== engineCheck);
    const { inputs } = await prepareRun(recipe, ports, checks);
    this.#prepared.set(key, inputs);
    return inputs;
  }

  async #read(runId: string): Promise<Omit<RunInProcess, 'said'>> {
    const tokenise = tokenisedBy(this.store, this.#cache);
    deepStrictEqual((await verifyLedger(this.store, runId, { deep: true, tokenise })).faults, []);
    const log = new RunLog(this.store, runId);
    const iterations: RunInProcess['iterations'][number][] = [];
    for await (const { batch, update } of log.iterations())
      iterations.push({ batch: batch.record, update: update.record });
    const head = await log.head();
    if (head === undefined) throw new Error(`${runId} has no term`);
    const base = actorOf(head.termRecord.components).weightsDigest;
    const weights = [base, ...iterations.map(({ update }) => actorOf(update.components).weightsDigest)];
    return { log, iterations, weights };
  }
}

/** Drives the run like workflows/drive.ts, without pauses and signals: also after a term that a trainer asked for. */
async function drive(...run: Parameters<typeof driveTerm>): Promise<void> {
  for (let terms = 0; ; terms++) {
    try {
      return await driveTerm(...run);
    } catch (error) {
      if (!(error instanceof TerminalError) || error.code !== outOfDateType || terms === 20) throw error;
    }
  }
}

async function driveTerm(
  activities: Activities,
  ref: RunRef,
  kind: RunKind,
  { committed, batchMade }: Pick<RunOptions, 'committed' | 'batchMade'>,
): Promise<void> {
  const { iterations, evaluationDue, ...start } = await activities.recoverHead(ref);
  await activities.openTerm(ref);
  let { position } = start;
  if (evaluationDue) await activities.evaluate({ ...ref, position });
  while (position < iterations) {
    const at = { ...ref, position };
    if (samplesResponses(kind)) {
      await Promise.all([activities.rollout(at), activities.reward(at)]);
    }
    await activities.advantage(at);
    await batchMade?.(position);
    const done = await activities.update(at);
    position = done.position;
    if (done.evaluationDue) await activities.evaluate({ ...ref, position });
    await committed?.(position);
  }
  await activities.checkpoint({ ...ref, position });
}
