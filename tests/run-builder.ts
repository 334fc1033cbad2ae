/**
 * Writes a run into a store as control process and workers would, with a state of ten numbers: for tests that read
 * runs.
 */
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { makeJobId, makeRunId } from '../core/ids.ts';
import type { Digest, RunId } from '../core/ids.ts';
import { offsetsOf } from '../core/offsets.ts';
import type { Store } from '../core/ports/store.ts';
import { parseRecipe } from '../core/recipe/index.ts';
import { mapComponents } from '../core/records/components.ts';
import { exampleLoss, exampleOptimizer, exampleProfile } from '../core/records/examples.test-support.ts';
import { keys } from '../core/records/keys.ts';
import {
  batchRecord,
  evalRecord,
  recordFormat,
  resultRecord,
  revisionRecord,
  runRecord,
  termRecord,
  updateRecord,
} from '../core/records/schema.ts';
import type { BatchRecord, Counters, RunInputs, StatusEntry, UpdateRecord } from '../core/records/schema.ts';
import type { RunState } from '../core/run-states.ts';
import type { AdvantageOutput } from '../core/wire/jobs/index.ts';
import type { ScoreTable } from '../core/wire/score-table.ts';
import { putBlob, putJsonBlob } from '../log/objects/blobs.ts';
import { storeDataset } from '../log/inputs/datasets.ts';
import { WaitingBlocks } from '../log/inputs/waiting-blocks.ts';
import { digestOf } from '../log/objects/digest.ts';
import type { StateDigests } from '../log/objects/digest.ts';
import { snapshotOf, stateDigests } from './state-digests.ts';
import { storeModelFolder } from '../log/inputs/model-facts.ts';
import { decide } from '../log/objects/records.ts';
import { RunLog } from '../log/run/run-log.ts';
import { appendStatus } from '../log/run/status.ts';
import { packageRoot } from '../infra/home.ts';
import { encodeBatch } from '../models/batch-tensors.ts';
import { encodeDatasetRows, encodeDatasetTokens, rowsFile, tokensFile } from '../models/dataset-fact.ts';
import type { DatasetFact } from '../models/dataset-fact.ts';
import { BlockWriter } from '../models/dataset/blocks.ts';
import { encodeRow } from '../models/dataset/stored-row.ts';
import type { StoredRow } from '../models/dataset/stored-row.ts';
import { writeModelFiles } from '../models/safetensors.ts';
import { openTokenizer } from '../models/tokenizer.ts';
import type { Tokenizer } from '../models/tokenizer.ts';
import { encodeTrajectories, singleTurn } from '../models/trajectories.ts';
import { saveCheckpoint } from '../workers/engine/state/checkpoint.ts';

export interface BuiltRunOptions {
  readonly name?: string;
  readonly kind?: 'rl' | 'sft';
  readonly createdAt?: Date;
  /** Iterations that the recipe asks for. */
  readonly iterations?: number;
  /** Number of committed updates. */
  readonly done?: number;
  readonly checkpoints?: readonly number[];
  /** Choose the best checkpoint by this mode of its accuracy, which rises from iteration to iteration. */
  readonly best?: 'max' | 'min';
  readonly evaluations?: readonly number[];
  /** The stack that drives it; default: that of `cliHome`. */
  readonly owner?: string;
  /** The response of the second sample of every draw. */
  readonly wrongAnswer?: string;
  readonly status?: Partial<Pick<StatusEntry, 'wish' | 'state' | 'reason'>>;
  /** What the last update made; default: the built state. */
  readonly lastState?: StateDigests;
  /** Rows in blocks of this size (format 2); default: in one piece. Only for kind rl. */
  readonly blockBytes?: number;
}

/** Name of the stack to which built runs belong. */
export const builtOwner = 'test';

export interface BuiltRun {
  readonly runId: RunId;
  readonly log: RunLog;
}

const parameters = [
  { name: 'model.embed_tokens.weight', shape: [4, 2], offset: 0, size: 8 },
  { name: 'model.norm.weight', shape: [2], offset: 8, size: 2 },
];
const prompts = ['What is 2 + 3?', 'What is 4 + 4?'];
const answers = ['5', '8'];
const samplesPerDraw = 2;
const learningRate = 1e-4;
/** Failure of the last sample of every iteration. */
const failure = 'the scorer took longer than 5 s';

/** The state after k iterations. */
export function builtState(k: number): { weights: Float32Array; m: Float32Array; v: Float32Array; steps: number } {
  const part = (factor: number) => Float32Array.from({ length: 10 }, (_, i) => factor * (k + i / 16));
  return { weights: part(1), m: part(0.5), v: part(0.25), steps: k };
}

/** Terms, batches, updates, validations, checkpoints and a status, by the same functions that write real ones. */
export async function buildRun(store: Store, options: BuiltRunOptions = {}): Promise<BuiltRun> {
  const { name = 'toy', kind = 'rl', createdAt = new Date('2026-01-02T03:04:05Z'), iterations = 4, done = 0 } = options;
  const runId = makeRunId(name, createdAt, digestOf([name, createdAt.toISOString(), kind]).slice(0, 4));
  const tokenizer = await openTokenizer(tokenizerFolder());
  const run = new RunWriter(store, runId, createdAt, tokenizer, options);
  const evaluations = options.evaluations ?? [];
  const { best } = options;
  await run.begin({ name, kind, iterations, evaluations, ...(best && { best }) }, options.owner ?? builtOwner);
  const checkpoints = options.checkpoints ?? [];
  for (let k = 0; k <= done; k++) {
    if (k > 0) await run.iterate(k, kind);
    if (evaluations.includes(k)) await run.evaluate(k);
    if (checkpoints.includes(k)) await saveBuilt({ store, runId }, 1, k);
  }
  const state: RunState = done >= iterations ? 'completed' : 'running';
  await appendStatus(run.log, { wish: 'run', state, ...options.status }, new Date(createdAt.getTime() + 60_000));
  return { runId, log: run.log };
}

/** A checkpoint of iteration k; `state`: of which built state, where a term has another one there. */
export async function saveBuilt(
  { store, runId }: Pick<RunLog, 'store' | 'runId'>,
  term: number,
  k: number,
  state = k,
): Promise<void> {
  const digests = stateDigests(builtState(state));
  await saveCheckpoint({ store, runId, term, iteration: k }, digests.stateDigest, {
    actor: snapshotOf(builtState(state), parameters),
  });
}

const tokenizerFolder = () => join(packageRoot(), 'tests/golden/tokenizers/byte-level-gpt2');

/** The keys of a recipe that asks for these validations: every `test_freq` iterations, and of the base. */
function validationsOf(evaluations: readonly number[]): {
  readonly test_freq: number;
  readonly val_before_train: boolean;
} {
  const divisor = (a: number, b: number): number => (b === 0 ? a : divisor(b, a % b));
  const frequency = evaluations.reduce(divisor, 0);
  return { test_freq: frequency === 0 ? -1 : frequency, val_before_train: evaluations.includes(0) };
}

class RunWriter {
  readonly log: RunLog;
  readonly #store: Store;
  readonly #runId: RunId;
  readonly #createdAt: Date;
  readonly #tokenizer: Tokenizer;
  readonly #wrong: string;
  readonly #blockBytes: number | undefined;
  readonly #stateAt: (k: number) => StateDigests;
  #dataset: DatasetFact = { rows: [], promptTokens: new Int32Array(), promptOffsets: new Int32Array(1) };
  /** Digest of the last record of the log. */
  #parent: Digest = '';

  constructor(
    store: Store,
    runId: RunId,
    createdAt: Date,
    tokenizer: Tokenizer,
    { wrongAnswer = '7', blockBytes, done, lastState }: BuiltRunOptions,
  ) {
    this.#stateAt = (k) => (k === done && lastState) || stateDigests(builtState(k));
    this.log = new RunLog(store, runId);
    this.#store = store;
    this.#runId = runId;
    this.#createdAt = createdAt;
    this.#tokenizer = tokenizer;
    this.#wrong = wrongAnswer;
    this.#blockBytes = blockBytes;
  }

  async begin(
    {
      name,
      kind,
      iterations,
      evaluations,
      best,
    }: Required<Pick<BuiltRunOptions, 'name' | 'kind' | 'iterations' | 'evaluations'>> & Pick<BuiltRunOptions, 'best'>,
    owner: string,
  ): Promise<void> {
    const runId = this.#runId;
    const createdAt = this.#createdAt.toISOString();
    await decide(
      this.#store,
      keys.run(runId),
      runRecord,
      { format: recordFormat, runId, name, kind, createdAt },
      () => true,
    );
    const inputs = await this.#inputs(kind);
    const recipe = parseRecipe({
      name,
      kind,
      model: { path: './model' },
      data: { train_files: 'train.jsonl', train_batch_size: prompts.length, shuffle: false },
      actor: { ppo_mini_batch_size: prompts.length, optim: { lr: learningRate } },
      rollout: { n: samplesPerDraw },
      trainer: {
        total_training_steps: iterations,
        ...validationsOf(evaluations),
        ...(best && { best_metric: 'accuracy', best_metric_mode: best }),
      },
    });
    const revision = {
      format: recordFormat,
      runId,
      revision: 1,
      fromPosition: 0,
      recipe: { ...recipe },
      inputs,
      createdAt,
    } as const;
    await decide(this.#store, keys.revision(runId, 1), revisionRecord, revision, () => true);
    const { stateDigest, weightsDigest } = stateDigests(builtState(0));
    const term = {
      format: recordFormat,
      runId,
      term: 1,
      startState: stateDigest,
      components: { actor: { stateDigest, weightsDigest, profile: exampleProfile } },
      revision: 1,
      owner,
      reason: 'start',
      skippedDraws: [],
      writer: this.#writer(0),
    } as const;
    this.#parent = (
      await decide(this.#store, keys.term(runId, 1), termRecord, { ...term, skippedDraws: [] }, () => true)
    ).digest;
  }

  async iterate(k: number, kind: 'rl' | 'sft'): Promise<void> {
    const runId = this.#runId;
    const results = kind === 'rl' ? await this.#sampled(k, 'train') : [];
    const before = countersAt(k - 1);
    const draws: BatchRecord['draws'] = prompts.map((_, row) => ({
      draw: drawOf(k, row),
      row,
      fate: 'trained',
      samples: kind === 'sft' ? [row] : row === 1 ? [2, failure] : [0, 1],
    }));
    const made = {
      tensors: await putBlob(this.#store, runId, await this.#batchTensors(k, kind)),
      oldLogProbs: 'on-policy',
      components: {
        actor: {
          learningRates: [learningRate],
          loss: { ...exampleLoss, kind: kind === 'rl' ? 'policy' : 'sft', lossScaleFactor: 16 },
          optimizer: exampleOptimizer,
        },
      },
      draws,
      after: countersAt(k),
      metrics: { 'critic/score/mean': 0.5, 'training/samples': kind === 'sft' ? 2 : 3 },
    } satisfies AdvantageOutput;
    const parentState = stateDigests(builtState(k - 1)).stateDigest;
    const batch: BatchRecord = {
      format: recordFormat,
      runId,
      term: 1,
      iteration: k,
      parent: this.#parent,
      parentState,
      revision: 1,
      ...made,
      components: mapComponents(made.components, (trained) => ({ profile: exampleProfile.id, ...trained })),
      results: [...results, await this.#result('advantage', k, made)],
      before,
      timings: { 'timing_s/rollout': 0.25 },
      decision: 'train',
      writer: this.#writer(k),
    };
    const decided = await decide(this.#store, keys.batch(runId, 1, k), batchRecord, batch, () => true);
    const digests = this.#stateAt(k);
    const update: UpdateRecord = {
      format: recordFormat,
      runId,
      term: 1,
      iteration: k,
      batch: decided.digest,
      parentState,
      outcome: 'applied',
      stateDigest: digests.stateDigest,
      components: {
        actor: {
          ...digests,
          steps: [{ lr: learningRate, gradNorm: 1, taken: true }],
          publications: { F32: digests.weightsDigest },
        },
      },
      after: batch.after,
      metrics: { 'actor/grad_norm': k, 'actor/lr': learningRate },
      timings: { 'timing_s/update': 0.5 },
      writer: this.#writer(k),
    };
    this.#parent = (await decide(this.#store, keys.update(runId, 1, k), updateRecord, update, () => true)).digest;
  }

  async evaluate(k: number): Promise<void> {
    const accuracy = 0.25 + k / 16;
    const record = {
      format: recordFormat,
      runId: this.#runId,
      term: 1,
      iteration: k,
      weightsDigest: stateDigests(builtState(k)).weightsDigest,
      questions: 4,
      failed: 0,
      accuracy,
      metrics: { 'val/accuracy': accuracy },
      timings: { 'timing_s/rollout': 0.125 },
      results: await this.#sampled(k, 'validate', accuracy),
      writer: this.#writer(k),
    } as const;
    await decide(
      this.#store,
      keys.evaluation(this.#runId, 1, k),
      evalRecord,
      { ...record, results: [...record.results] },
      () => true,
    );
  }

  /** The model's files and the rows. */
  async #inputs(kind: 'rl' | 'sft'): Promise<RunInputs> {
    const folder = mkdtempSync(join(tmpdir(), 'petrel-model-'));
    try {
      cpSync(tokenizerFolder(), folder, { recursive: true });
      writeFileSync(
        join(folder, 'config.json'),
        JSON.stringify({ architectures: ['LlamaForCausalLM'], model_type: 'llama', torch_dtype: 'bfloat16' }),
      );
      await writeModelFiles(
        folder,
        parameters.map(({ name, shape, offset, size }) => ({
          name,
          shape,
          data: builtState(0).weights.subarray(offset, offset + size),
        })),
        { dtype: 'F32' },
      );
      const tokens = await this.#tokenizer.encodeBatch(prompts);
      const responses = (await this.#responses()).filter((_, b) => b % samplesPerDraw === 0);
      this.#dataset = {
        rows: prompts.map((prompt, row) => ({ dataSource: 'toy', prompt, groundTruth: answers[row] })),
        promptTokens: Int32Array.from(tokens.flatMap((one) => [...one])),
        promptOffsets: offsetsOf(tokens.map(lengthOf)),
        ...(kind === 'sft' && {
          responseTokens: Int32Array.from(responses.flatMap((one) => [...one])),
          responseOffsets: offsetsOf(responses.map(lengthOf)),
        }),
      };
      const dataset = await this.#storeRows();
      return {
        model: await storeModelFolder(this.#store, folder),
        train: dataset,
        trainRows: prompts.length,
        validation: dataset,
        validationRows: prompts.length,
        scorer: { type: 'builtin', name: 'exact', revision: '1' },
      };
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  }

  async #storeRows(): Promise<string> {
    const blockBytes = this.#blockBytes;
    if (blockBytes === undefined) {
      return storeDataset(this.#store, {
        [tokensFile]: encodeDatasetTokens(this.#dataset),
        [rowsFile]: encodeDatasetRows(this.#dataset),
      });
    }
    const blocks = new WaitingBlocks(tmpdir());
    try {
      const writer = new BlockWriter((bytes, rows) => blocks.add(bytes, rows), blockBytes);
      for (const row of this.#dataset.rows) await writer.add(encodeRow(row as StoredRow));
      await writer.end();
      return await blocks.store(this.#store, { kind: 'rl', longest: 100 });
    } finally {
      await blocks.remove();
    }
  }

  /** What the samples say, draw by draw: the first one is right, the second says `wrong`. */
  #responses(): Promise<Int32Array[]> {
    return this.#tokenizer.encodeBatch(answers.flatMap((answer) => [` ${answer}`, this.#wrong]));
  }

  /** One rollout and one reward result. Validations have a column `acc`. */
  async #sampled(k: number, purpose: 'train' | 'validate', accuracy?: number): Promise<string[]> {
    const responses = await this.#responses();
    const lengths = responses.reduce((sum, one) => sum + one.length, 0);
    const trajectories = await putBlob(
      this.#store,
      this.#runId,
      encodeTrajectories({
        weightsDigest: stateDigests(builtState(purpose === 'train' ? k - 1 : k)).weightsDigest,
        drawOffsets_G1: Int32Array.of(0, samplesPerDraw, 2 * samplesPerDraw),
        draw_S: Int32Array.from(
          responses,
          (_, b) => (purpose === 'train' ? drawOf(k, 0) : 0) + Math.floor(b / samplesPerDraw),
        ),
        row_S: Int32Array.from(responses, (_, b) => Math.floor(b / samplesPerDraw)),
        promptTokens: this.#dataset.promptTokens,
        promptOffsets_P1: this.#dataset.promptOffsets,
        prompt_S: Int32Array.from(responses, (_, b) => Math.floor(b / samplesPerDraw)),
        responseTokens_T: Int32Array.from(responses.flatMap((one) => [...one])),
        responseOffsets_S1: offsetsOf(responses.map(lengthOf)),
        logProbs_T: new Float32Array(lengths),
        samplingLogProbs_T: new Float32Array(lengths),
        ...singleTurn(offsetsOf(responses.map(lengthOf)), Int32Array.of(0, 1, 0, 1), purpose === 'train' ? k - 1 : k),
        stopReason_S: Uint8Array.of(1, 2, 1, 2),
      }),
    );
    const table: ScoreTable = {
      trajectories,
      scores: [1, 0, 1, null],
      reasons: [null, null, null, failure],
      columns: { acc: accuracy === undefined ? [1, 0, 1, null] : [accuracy, accuracy, accuracy, accuracy] },
      texts: { pred: ['5', '7', '8', null] },
      sources: { names: ['toy'], samples: [0, 0, 0, 0] },
    };
    const scores = await putJsonBlob(this.#store, this.#runId, table);
    return [
      await this.#result('rollout', [purpose, k], {
        trajectories,
        samples: responses.length,
        promptTokens: 1,
        responseTokens: lengths,
      }),
      await this.#result('reward', [purpose, k], { scores, failed: 1 }),
    ];
  }

  async #result(stage: string, input: unknown, output: Record<string, unknown>): Promise<string> {
    const jobId = makeJobId(stage, digestOf([this.#runId, input]));
    await decide(
      this.#store,
      keys.result(this.#runId, jobId),
      resultRecord,
      { format: recordFormat, jobId, stage, output, timings: {}, writer: this.#writer(0) },
      () => true,
    );
    return jobId;
  }

  /** The rows to learn, or the samples that could be scored, in one optimiser step; advantages +1 and −1. */
  async #batchTensors(k: number, kind: 'rl' | 'sft'): Promise<Uint8Array> {
    const promptOf = (row: number) =>
      this.#dataset.promptTokens.subarray(this.#dataset.promptOffsets[row], this.#dataset.promptOffsets[row + 1]);
    const all = await this.#responses();
    const places = kind === 'sft' ? [0, 2] : [0, 1, 2];
    const samples = places.map((b) => ({
      prompt: promptOf(Math.floor(b / samplesPerDraw)),
      response: all[b] ?? new Int32Array(),
    }));
    const offsets_S1 = offsetsOf(samples.map(({ prompt, response }) => prompt.length + response.length));
    const scored = samples.flatMap(({ prompt, response }, b) =>
      [...response].map((_, t) => (offsets_S1[b] ?? 0) + prompt.length + t),
    );
    const advantages_T = Float32Array.from(
      samples.flatMap(({ response }, b) => [...response].map(() => (b === 1 ? -1 : 1))),
    );
    return encodeBatch(
      {
        tokens_N: Int32Array.from(samples.flatMap(({ prompt, response }) => [...prompt, ...response])),
        offsets_S1,
        scored_T: Int32Array.from(scored),
        scoredOffsets_S1: offsetsOf(samples.map(({ response }) => response.length)),
        mask_T: new Uint8Array(scored.length).fill(1),
        advantages_T,
        returns_T: advantages_T.map((advantage) => advantage * k),
        rewards_S: kind === 'sft' ? new Float32Array(2) : Float32Array.of(1, 0, 1),
        ...(kind === 'rl' && { rolloutLogProbs_T: new Float32Array(scored.length) }),
        stepOffsets_U1: Int32Array.of(0, 1),
        microOffsets_M1: Int32Array.of(0, samples.length),
        microSamples: Int32Array.from(samples, (_, b) => b),
      },
      { iteration: k, parentState: stateDigests(builtState(k - 1)).stateDigest },
    );
  }

  #writer(k: number) {
    return { process: 'test', at: new Date(this.#createdAt.getTime() + k * 1000).toISOString() };
  }
}

const lengthOf = ({ length }: Int32Array) => length;
const drawOf = (k: number, row: number) => Math.max(0, k - 1) * prompts.length + row;
const countersAt = (k: number): Counters => ({
  cursor: k * prompts.length,
  optimizerSteps: { actor: k },
  badSteps: 0,
  controllers: { klCoef: 0 },
});
