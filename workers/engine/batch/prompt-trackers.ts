/**
 * What the estimator `spo` knows of the prompts of a batch, and what it remembers after it (core/rl/spo-tracker.ts).
 *
 * D, how far the policy has moved since a prompt was last sampled, is taken when its next response is scored: between
 * the policy that sampled the last response and the one that sampled this one, as in the paper. verl takes it one
 * update later, between the policies after both updates. With several responses to a prompt in a batch the past counts
 * ρ once and each response once; verl keeps the last one only.
 */
import { at } from '../../../core/at.ts';
import { PauseError } from '../../../core/errors.ts';
import type { Counters } from '../../../core/records/schema.ts';
import { packMicroBatches } from '../../../core/rl/balance/pack-micro-batches.ts';
import { distancesOfRows, promptRate, rhoOf, startTracker, updateTracker } from '../../../core/rl/spo-tracker.ts';
import type { PromptTracker } from '../../../core/rl/spo-tracker.ts';
import type { AdvantageInput, AlgorithmSettings } from '../../../core/wire/jobs/index.ts';
import {
  decodeTrackers,
  encodeTrackers,
  partsToMerge,
  responsesBlob,
  trackersBlob,
  withTrackers,
} from '../../../core/wire/prompt-trackers.ts';
import type { PromptTrackers, TrackedPrompt } from '../../../core/wire/prompt-trackers.ts';
import { getBlob, getJsonBlob, putBlob, putJsonBlob } from '../../../log/objects/blobs.ts';
import { decodeLastResponses, encodeLastResponses } from '../../../models/last-responses.ts';
import type { LastResponse } from '../../../models/last-responses.ts';
import { layOut } from './batch-layout.ts';
import { outputsOf } from './batch-outputs.ts';
import type { Layout } from './batch-outputs.ts';
import type { EngineHost } from '../host/host.ts';
import type { JobContext } from '../job/context.ts';
import { rowsOf } from '../samples/rows.ts';
import type { Sample } from '../samples/samples.ts';
import type { StageTimer } from '../job/stage-timer.ts';

type SpoSettings = NonNullable<AlgorithmSettings['spo']>;

export interface TrackedBatch {
  /** p̂ of the prompt of each sample, before the batch. */
  readonly promptValues_S: Float64Array;
  /** All controllers after the batch. */
  readonly controllers: Counters['controllers'];
  readonly metrics: Readonly<Record<string, number>>;
}

/** A prompt of the batch. */
interface Visited {
  readonly row: number;
  /** The row's samples, by place in the batch. */
  readonly members: readonly number[];
  readonly before: TrackedPrompt;
  /** The last response before the batch. */
  readonly last?: LastResponse;
}

/**
 * Undefined with another estimator, and for a batch without samples. `layout`: with old log-probs where ρ follows the
 * policy. Throws PauseError `AccuracyOutOfRange` for a score that is no share of a success.
 */
export async function trackedPrompts(
  host: EngineHost,
  input: AdvantageInput,
  context: JobContext,
  samples: readonly Sample[],
  layout: Layout,
  scores_S: Float32Array,
  timer: StageTimer,
): Promise<TrackedBatch | undefined> {
  const { spo } = input.algorithm;
  if (spo === undefined || samples.length === 0) return undefined;
  checkScores(samples, scores_S);
  const store = await host.store(context.store);
  const blob = trackersBlob(input.before);
  const known = blob === undefined ? new Map() : decodeTrackers(await getJsonBlob(store, context.runId, blob), blob);
  const readPart = async (part: number): Promise<LastResponse[]> => {
    const digest = responsesBlob(input.before, part);
    return decodeLastResponses(await getBlob(store, context.runId, digest), digest);
  };
  const visited = await visitedPrompts(spo, known, samples, readPart);
  const isByPolicy = spo.rho === 'kl';
  const distances = isByPolicy
    ? await timer.time('timing_s/spo', () => distancesOf(host, input, context, visited))
    : undefined;
  const after = new Map<number, TrackedPrompt>(known);
  visited.forEach((one, i) => {
    const tracked = trackedAfter(one, scores_S, rhoOfPrompt(spo, distances?.[i]));
    after.set(one.row, { ...tracked, part: isByPolicy ? input.iteration : null });
  });
  const kept = isByPolicy ? visited.map((one) => newLastResponse(one, samples, layout)) : [];
  for (const part of partsToMerge(after)) {
    if (part === input.iteration) continue;
    const still = (await readPart(part)).filter(({ row }) => after.get(row)?.part === part);
    for (const { row } of still) after.set(row, { ...present(after.get(row)), part: input.iteration });
    kept.push(...still);
  }
  kept.sort((one, other) => one.row - other.row);
  const controllers = withTrackers(input.before, after, {
    iteration: input.iteration,
    trackers: await putJsonBlob(store, context.runId, encodeTrackers(after, input)),
    ...(kept.length > 0 && { responses: await putBlob(store, context.runId, encodeLastResponses(kept, input)) }),
  });
  const rowOfSample = new Map(visited.flatMap((one) => one.members.map((s) => [s, one] as const)));
  return {
    promptValues_S: Float64Array.from(samples, (_, s) => promptRate(present(rowOfSample.get(s)).before)),
    controllers,
    metrics: metricsOf(spo, visited, after, scores_S, distances),
  };
}

function checkScores(samples: readonly Sample[], scores_S: Float32Array): void {
  samples.forEach(({ draw }, s) => {
    const score = at(scores_S, s);
    if (score >= 0 && score <= 1) return;
    throw new PauseError(
      'AccuracyOutOfRange',
      `spo counts successes between 0 and 1, and a response of draw ${draw} has the score ${score}`,
      { hint: 'let the scorer return a score between 0 and 1' },
    );
  });
}

async function visitedPrompts(
  spo: SpoSettings,
  known: PromptTrackers,
  samples: readonly Sample[],
  readPart: (part: number) => Promise<LastResponse[]>,
): Promise<Visited[]> {
  const byRow = new Map<number, number[]>();
  samples.forEach(({ row }, s) => {
    const members = byRow.get(row);
    if (members === undefined) byRow.set(row, [s]);
    else members.push(s);
  });
  const parts = new Set([...byRow.keys()].flatMap((row) => known.get(row)?.part ?? []));
  const last = new Map<number, LastResponse>();
  for (const part of spo.rho === 'kl' ? parts : [])
    for (const one of await readPart(part)) if (known.get(one.row)?.part === part) last.set(one.row, one);
  return [...byRow].map(([row, members]) => {
    const before = known.get(row) ?? { ...startTracker([], 0, spo.lowest), responses: 0, part: null };
    const response = last.get(row);
    return { row, members, before, ...(response && { last: response }) };
  });
}

/** D of each prompt: how far the policy has moved on its last response. A prompt without one has the distance 0. */
async function distancesOf(
  host: EngineHost,
  input: AdvantageInput,
  context: JobContext,
  visited: readonly Visited[],
): Promise<Float64Array> {
  const distances = new Float64Array(visited.length);
  const places = visited.flatMap(({ last }, i) => (last === undefined ? [] : [{ i, last }]));
  if (places.length === 0) return distances;
  const given = places.map(({ last }) => asSample(last));
  const lengths = given.map(({ prompt, response }) => prompt.length + response.length);
  const micros = packMicroBatches(lengths, input.algorithm.maxTokensPerMicroBatch);
  const layout = layOut(given, { steps: [[...micros.keys()]], micros });
  const target = input.partState ?? input.parentState;
  const { engine } = await host.stateAt(context, { ...input, model: input.inputs.model }, target);
  const { loss } = input.algorithm;
  const { logProbs } = await outputsOf(engine, layout, { loss }, ['logProbs'], 'last responses', context);
  const found = distancesOfRows(present(layout.rolloutLogProbs_T), logProbs, rowsOf(layout));
  places.forEach(({ i }, s) => (distances[i] = at(found, s)));
  return distances;
}

const asSample = ({ row, prompt, response, mask, logProbs }: LastResponse): Sample => ({
  draw: row,
  row,
  prompt,
  response,
  mask,
  rolloutLogProbs: logProbs,
  score: 0,
  stopReason: 1,
  columns: {},
});

/** The past counts ρ once, and each response once. */
function trackedAfter({ members, before }: Visited, scores_S: Float32Array, rho: number): Omit<TrackedPrompt, 'part'> {
  const { alpha, beta } = members.reduce<PromptTracker>(
    (tracker, s, i) => updateTracker(tracker, at(scores_S, s), i === 0 ? rho : 1),
    before,
  );
  return { alpha, beta, responses: before.responses + members.length };
}

const rhoOfPrompt = (spo: SpoSettings, distance = 0): number =>
  spo.rho === 'kl' ? rhoOf(distance, { lowest: spo.lowest }) : spo.value;

/** The last one of several responses to a prompt. */
function newLastResponse({ row, members }: Visited, samples: readonly Sample[], layout: Layout): LastResponse {
  const s = at(members, -1);
  const { prompt, response, mask } = at(samples, s);
  const [start, end] = [at(layout.scoredOffsets_S1, s), at(layout.scoredOffsets_S1, s + 1)];
  return { row, prompt, response, mask, logProbs: present(layout.oldLogProbs_T).subarray(start, end) };
}

function metricsOf(
  spo: SpoSettings,
  visited: readonly Visited[],
  after: PromptTrackers,
  scores_S: Float32Array,
  distances: Float64Array | undefined,
): Record<string, number> {
  const of = (value: (one: Visited) => number) => mean(visited.map(value));
  const counts = visited.map(({ row }) => present(after.get(row)).responses);
  const rhos = visited.map((_, i) => rhoOfPrompt(spo, distances?.[i]));
  return {
    'spo/alpha': of(({ before }) => before.alpha),
    'spo/beta': of(({ before }) => before.beta),
    'spo/Neff': of(({ before }) => before.alpha + before.beta),
    'spo/p_hats': of(({ before }) => promptRate(before)),
    'spo/adv_before_norm': mean(
      visited.flatMap(({ members, before }) => members.map((s) => at(scores_S, s) - promptRate(before))),
    ),
    'spo/first_sampled_ratio': of(({ before }) => (before.responses === 0 ? 1 : 0)),
    'spo/cur_sampled_number/min': Math.min(...counts),
    'spo/cur_sampled_number/mean': mean(counts),
    'spo/cur_sampled_number/max': Math.max(...counts),
    ...(distances === undefined
      ? { 'spo/rho': mean(rhos) }
      : {
          'spo/D': mean([...distances]),
          'spo/rho': mean(Array.from(distances, (distance) => rhoOf(distance, { lowest: 0, highest: 1 }))),
          'spo/rho_clipped': mean(rhos),
        }),
  };
}

const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;

function present<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('the batch was not made for spo');
  return value;
}
