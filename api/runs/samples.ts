/** Samples of an iteration or a validation, combined from result records, trajectories, scores and the batch. */
import { isGiven } from '../../core/given-loss.ts';
import { at } from '../../core/at.ts';
import { PetrelError } from '../../core/errors.ts';
import type { Store } from '../../core/ports/store.ts';
import { keys } from '../../core/records/keys.ts';
import { resultRecord, revisionRecord } from '../../core/records/schema.ts';
import type { BatchRecord, DrawRecord } from '../../core/records/schema.ts';
import type { CompareOutput, RewardOutput, RolloutOutput } from '../../core/wire/jobs/index.ts';
import { parseScoreTable } from '../../core/wire/score-table.ts';
import type { ScoreTable } from '../../core/wire/score-table.ts';
import { readRetention, removedByRetention } from '../../log/run/retention-log.ts';
import { getBlob, getJsonBlob } from '../../log/objects/blobs.ts';
import { readDataset } from '../../log/inputs/datasets.ts';
import { modelFolder } from '../../log/inputs/model-facts.ts';
import { needRecord } from '../../log/objects/records.ts';
import type { RunLog } from '../../log/run/run-log.ts';
import type { BatchTensors } from '../../models/batch-tensors.ts';
import { BlockCache, openDataset } from '../../models/dataset-rows.ts';
import type { Dataset, ScorerRow } from '../../models/dataset-rows.ts';
import { openTokenizer } from '../../models/tokenizer.ts';
import type { Tokenizer } from '../../models/tokenizer.ts';
import { decodeTrajectories, promptOf, stopReasons } from '../../models/trajectories.ts';
import { partsOfBatch } from '../batch-parts.ts';

/** One response. */
export interface SampleView {
  /** The iteration of the sample; in a validation the policy version. */
  readonly iteration: number;
  readonly draw: number;
  readonly row: number;
  /** Number within the draw, from 0. */
  readonly sample: number;
  /** The prompt as rendered by the chat template. */
  readonly prompt: string;
  readonly response: string;
  readonly responseTokens: number;
  /** null: the scorer failed, see `reason`. */
  readonly reward: number | null;
  readonly reason?: string;
  /** What else the scorer returned: numbers, and texts such as `pred`. */
  readonly columns: Readonly<Record<string, number | string | null>>;
  /** Mean over the response's tokens. Absent in validations and for samples outside the batch. */
  readonly advantage?: number;
  readonly stopReason: 'stop' | 'length' | 'convicted' | 'unknown';
  /** The outcome of its draw; absent in validations. */
  readonly fate?: DrawRecord['fate'];
  readonly groundTruth?: unknown;
  readonly dataSource?: string;
}

export interface SamplePorts {
  readonly log: RunLog;
  /** Folder for copies of models from remote stores. */
  readonly cache: string;
}

/** Samples that iteration k trains on, in draw order; where responses come with the rows, these. */
export async function trainingSamples(batch: BatchRecord, { log, cache }: SamplePorts): Promise<SampleView[]> {
  const { inputs } = (await needRecord(log.store, keys.revision(log.runId, batch.revision), revisionRecord)).record;
  const tokenizer = await openTokenizer(await modelFolder(log.store, inputs.model, cache, 'text'));
  const trained = await kept(log, batch.iteration, trainedSamples(batch, log));
  const rows = await openRows(log.store, inputs.train);
  // The one result is the job that made the batch: no response was sampled.
  if (isGiven(batch)) return learntRows(batch, trained, rows, tokenizer);
  const views = await kept(log, batch.iteration, scoredSamples(batch.results, batch.iteration, rows, tokenizer, log));
  const draws = new Map(batch.draws.map((draw) => [draw.draw, draw]));
  return views.map((view) => {
    const draw = draws.get(view.draw);
    const index = draw?.samples[view.sample];
    return {
      ...view,
      ...(draw === undefined ? {} : { fate: draw.fate }),
      ...(typeof index === 'number' ? { advantage: trainedAt(trained, index).advantage } : {}),
    };
  });
}

/** Samples of a validation record. */
export async function validationSamples(
  evaluation: { readonly iteration: number; readonly results: readonly string[] },
  { log, cache }: SamplePorts,
): Promise<SampleView[]> {
  const { inputs } = await log.revision();
  const tokenizer = await openTokenizer(await modelFolder(log.store, inputs.model, cache, 'text'));
  const [compared] = evaluation.results.filter((jobId) => jobId.startsWith('compare-'));
  if (compared !== undefined) {
    const rows = await openRows(log.store, inputs.validation ?? inputs.train);
    return kept(log, evaluation.iteration, comparedPairs(compared, evaluation.iteration, rows, tokenizer, log));
  }
  return kept(
    log,
    evaluation.iteration,
    scoredSamples(
      evaluation.results,
      evaluation.iteration,
      await openRows(log.store, inputs.validation ?? inputs.train),
      tokenizer,
      log,
    ),
  );
}

/**
 * Throws TerminalError `RemovedByRetention` for a missing object at or before the floor, because retention removed it.
 */
async function kept<T>(log: RunLog, iteration: number, reading: Promise<T>): Promise<T> {
  try {
    return await reading;
  } catch (error) {
    if (!(error instanceof PetrelError) || error.code !== 'MissingBlob') throw error;
    const { floor } = await readRetention(log);
    throw iteration <= floor ? removedByRetention(log.runId, `the samples of iteration ${iteration}`, floor) : error;
  }
}

/** Result records come in pairs, a rollout and then its reward. Records of other stages are skipped. */
async function scoredSamples(
  jobIds: readonly string[],
  iteration: number,
  rows: Dataset,
  tokenizer: Tokenizer,
  log: RunLog,
): Promise<SampleView[]> {
  const jobs = jobIds.filter((jobId) => jobId.startsWith('rollout-') || jobId.startsWith('reward-'));
  const records = await Promise.all(
    jobs.map(async (jobId) => (await needRecord(log.store, keys.result(log.runId, jobId), resultRecord)).record),
  );
  const views: SampleView[] = [];
  for (let i = 0; i + 1 < records.length; i += 2) {
    const rollout = records[i]?.output as unknown as RolloutOutput;
    const reward = records[i + 1]?.output as unknown as RewardOutput;
    views.push(...(await partSamples(rollout.trajectories, reward.scores, iteration, rows, tokenizer, log)));
  }
  return views;
}

/**
 * Both responses of every pair of a validation: the chosen one, with what the comparison says, and the rejected one.
 */
async function comparedPairs(
  jobId: string,
  iteration: number,
  dataset: Dataset,
  tokenizer: Tokenizer,
  { store, runId }: RunLog,
): Promise<SampleView[]> {
  const { output } = (await needRecord(store, keys.result(runId, jobId), resultRecord)).record;
  const { scores } = output as unknown as CompareOutput;
  const table = parseScoreTable(await getJsonBlob(store, runId, scores), scores);
  const numbers = table.scores.map((_, row) => row);
  const rows = await shownRows(dataset, numbers, tokenizer);
  const pairs = await dataset.sequences(numbers, tokenizer);
  return pairs.flatMap(({ response = new Int32Array(), rejected }, row) =>
    [response, rejected?.response ?? new Int32Array()].map((tokens, sample): SampleView => {
      const { prompt = '', ...facts } = { prompt: rows.get(row)?.prompt, ...factsOf(rows.get(row)) };
      return {
        iteration,
        draw: row,
        row,
        sample,
        prompt,
        response: tokenizer.decode(tokens, { skipSpecial: true }),
        responseTokens: tokens.length,
        reward: sample === 0 ? at(table.scores, row) : null,
        columns: sample === 0 ? columnsOf(table, row) : {},
        stopReason: 'unknown',
        ...facts,
      };
    }),
  );
}

async function partSamples(
  trajectories: string,
  scores: string,
  iteration: number,
  dataset: Dataset,
  tokenizer: Tokenizer,
  { store, runId }: RunLog,
): Promise<SampleView[]> {
  const t = decodeTrajectories(await getBlob(store, runId, trajectories), trajectories);
  const table = parseScoreTable(await getJsonBlob(store, runId, scores), scores);
  const rows = await shownRows(dataset, [...t.row_S], tokenizer);
  return Array.from(t.draw_S, (draw, b): SampleView => {
    const row = at(t.row_S, b);
    const response = t.responseTokens_T.subarray(t.responseOffsets_S1[b], t.responseOffsets_S1[b + 1]);
    return {
      iteration,
      draw,
      row,
      sample: at(t.session_S, b),
      prompt: rows.get(row)?.prompt ?? tokenizer.decode(promptOf(t, b)),
      response: tokenizer.decode(response, { skipSpecial: true }),
      responseTokens: response.length,
      reward: at(table.scores, b),
      ...(typeof table.reasons[b] === 'string' ? { reason: table.reasons[b] } : {}),
      columns: columnsOf(table, b),
      stopReason: nameOfStop(t.stopReason_S[b]),
      ...factsOf(rows.get(row)),
    };
  });
}

/** Columns of one sample. A column may have numbers of some samples and texts of others. */
function columnsOf({ columns, texts = {} }: ScoreTable, b: number): SampleView['columns'] {
  const numbers = Object.entries(columns).map(([name, values]) => [name, at(values, b)] as const);
  const words = Object.entries(texts).map(([name, values]) => [name, at(values, b)] as const);
  return Object.fromEntries([...numbers, ...words.filter(([name, text]) => text !== null || !(name in columns))]);
}

function nameOfStop(code: number | undefined): SampleView['stopReason'] {
  const names = Object.keys(stopReasons) as (keyof typeof stopReasons)[];
  const name = names.find((one) => stopReasons[one] === code);
  // The stored rows and --json keep the first name of a poison sample.
  return name === 'poison' ? 'convicted' : (name ?? 'unknown');
}

/** A sample in its batch. The tokens are kept where no trajectories have them. */
interface TrainedSample {
  readonly advantage: number;
  readonly prompt?: Int32Array;
  readonly response?: Int32Array;
}

/** Samples by their number in the batch. */
async function trainedSamples(batch: BatchRecord, log: RunLog): Promise<ReadonlyMap<number, TrainedSample>> {
  const found = new Map<number, TrainedSample>();
  for await (const part of partsOfBatch(log, batch, batch.tensors))
    for (let i = 0; i < part.rewards_S.length; i++) {
      const tokens = isGiven(batch) ? tokensOf(part, i) : {};
      found.set(part.places_S?.[i] ?? i, { advantage: meanAdvantage(part, i), ...tokens });
    }
  return found;
}

/** A row without a response has no scored token. */
function tokensOf(
  { tokens_N, offsets_S1, scored_T, scoredOffsets_S1 }: BatchTensors,
  i: number,
): Required<Pick<TrainedSample, 'prompt' | 'response'>> {
  const [start, end] = [at(offsets_S1, i), at(offsets_S1, i + 1)];
  const scored = at(scoredOffsets_S1, i);
  const first = scored === at(scoredOffsets_S1, i + 1) ? end : at(scored_T, scored);
  return { prompt: tokens_N.slice(start, first), response: tokens_N.slice(first, end) };
}

function trainedAt(trained: ReadonlyMap<number, TrainedSample>, index: number): TrainedSample {
  const sample = trained.get(index);
  if (sample === undefined) throw new RangeError(`sample ${index} is not in the batch`);
  return sample;
}

async function learntRows(
  batch: BatchRecord,
  trained: ReadonlyMap<number, TrainedSample>,
  dataset: Dataset,
  tokenizer: Tokenizer,
): Promise<SampleView[]> {
  const drawn = batch.draws.map(({ row }) => row);
  const rows = await shownRows(dataset, drawn, tokenizer);
  return batch.draws.flatMap(({ draw, row, fate, samples }) =>
    samples
      .filter((index) => typeof index === 'number')
      .map((index, sample): SampleView => {
        const { prompt = new Int32Array(), response = new Int32Array() } = trainedAt(trained, index);
        return {
          iteration: batch.iteration,
          draw,
          row,
          sample,
          prompt: rows.get(row)?.prompt ?? tokenizer.decode(prompt),
          response: tokenizer.decode(response, { skipSpecial: true }),
          responseTokens: response.length,
          reward: null,
          columns: {},
          stopReason: 'unknown',
          fate,
          ...factsOf(rows.get(row)),
        };
      }),
  );
}

function meanAdvantage({ advantages_T, scoredOffsets_S1 }: BatchTensors, index: number): number {
  const values = advantages_T.subarray(scoredOffsets_S1[index], scoredOffsets_S1[index + 1]);
  return values.length === 0 ? 0 : values.reduce((sum, value) => sum + value, 0) / values.length;
}

function factsOf(row: ScorerRow | undefined): Pick<SampleView, 'groundTruth' | 'dataSource'> {
  if (row === undefined) return {};
  return { dataSource: row.dataSource, ...(row.groundTruth === undefined ? {} : { groundTruth: row.groundTruth }) };
}

type ShownRow = ScorerRow & { readonly prompt: string };

/** Rows by their numbers. A number outside the dataset has no row. */
async function shownRows(
  dataset: Dataset,
  drawn: readonly number[],
  tokenizer: Tokenizer,
): Promise<ReadonlyMap<number, ShownRow>> {
  const rows = [...new Set(drawn)].filter((row) => row >= 0 && row < dataset.count);
  const prompts = await dataset.prompts(rows, tokenizer);
  const facts = await dataset.facts(rows);
  return new Map(facts.map((fact, i) => [at(rows, i), { ...fact, prompt: at(prompts, i) }]));
}

const cacheBytes = 64 * 1024 * 1024;

async function openRows(store: Store, digest: string): Promise<Dataset> {
  return openDataset(await readDataset(store, digest), new BlockCache(cacheBytes));
}
