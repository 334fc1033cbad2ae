/** The advantage stage: from scored samples, or rows to learn, to a closed batch. */
import { at } from '../../core/at.ts';
import { mapComponents } from '../../core/records/components.ts';
import type { Counters } from '../../core/records/schema.ts';
import { advantageEstimator } from '../../core/rl/advantages/index.ts';
import { packMicroBatches } from '../../core/rl/balance/pack-micro-batches.ts';
import { lrFactor } from '../../core/rl/lr-schedule.ts';
import { miniBatches } from '../../core/rl/mini-batches.ts';
import { drawWithReplacement, pfPpoWeights } from '../../core/rl/pf-ppo.ts';
import type { AdvantageInput, AdvantageOutput, BatchComponent, ScoredSamples } from '../../core/wire/jobs.ts';
import { parseScoreTable } from '../../core/wire/score-table.ts';
import { getBlob, getJsonBlob, putBlob } from '../../infra/store/blobs.ts';
import { encodeBatch } from '../../models/batch-tensors.ts';
import type { BatchTensors } from '../../models/batch-tensors.ts';
import { decodeTrajectories, offsetsOf } from '../../models/trajectories.ts';
import { batchMetrics } from './batch-metrics.ts';
import { withOutputs } from './batch-outputs.ts';
import type { Layout } from './batch-outputs.ts';
import { tokenizerOf } from '../tokenizers.ts';
import type { EngineHost, JobContext } from './host.ts';
import { numbersToJson } from './json-numbers.ts';
import { rewardsOf } from './rewards.ts';
import type { BatchRewards } from './rewards.ts';
import { rowsOf } from './rows.ts';
import { StageTimer } from './stage-timer.ts';
import { compose } from './samples.ts';
import type { Composition, Sample, ScoredPart, ScoredResponses } from './samples.ts';

export async function advantage(
  host: EngineHost,
  input: AdvantageInput,
  context: JobContext,
): Promise<AdvantageOutput> {
  const timer = new StageTimer(context);
  const composition =
    input.kind === 'sft'
      ? await rowsToLearn(host, input, context)
      : compose(input, await readParts(host, input, context), context.runId);
  const plan = planSteps(input, composition.samples);
  const training = planTraining(input, composition.samples, plan);
  const layout = layOut(composition.samples, plan);
  const { layout: scored, entropy_T } = await withOutputs(host, input, context, layout, plan.steps.length, timer);
  const rewards = rewardsOf(input, composition.samples, scored);
  const batch = { ...scored, ...stepsOf(training), ...advantagesOf(input, composition.samples, scored, rewards) };
  const store = await host.store(context.store);
  const tensors = await putBlob(store, context.runId, encodeBatch(batch, input));
  timer.end('timing_s/adv');
  return {
    tensors,
    oldLogProbs: batch.oldLogProbs_T === undefined ? 'on-policy' : 'stored',
    ...(input.algorithm.layout && { layout: input.algorithm.layout }),
    components: trainedBy(input, plan.steps.length),
    draws: composition.draws,
    after: countersAfter(input, plan.steps.length, rewards),
    metrics: numbersToJson(batchMetrics(input, composition, batch, rewards, entropy_T)),
  };
}

async function readParts(host: EngineHost, input: AdvantageInput, context: JobContext): Promise<ScoredPart[]> {
  const store = await host.store(context.store);
  const read = async ({ trajectories, scores }: Omit<ScoredSamples, 'baseline'>): Promise<ScoredResponses> => ({
    trajectories: decodeTrajectories(await getBlob(store, context.runId, trajectories), trajectories),
    scores: parseScoreTable(await getJsonBlob(store, context.runId, scores), scores),
  });
  return Promise.all(
    input.parts.map(async ({ wave = 0, baseline, ...part }) => ({
      wave,
      ...(await read(part)),
      ...(baseline && { baseline: await read(baseline) }),
    })),
  );
}

/** Supervised rows: every draw is one sample, its response what is to be learnt. */
async function rowsToLearn(host: EngineHost, input: AdvantageInput, context: JobContext): Promise<Composition> {
  const dataset = await host.dataset(context, input.inputs.train);
  const tokenizer = await tokenizerOf(await host.modelFolder(context, input.inputs.model, 'text'));
  const sequences = await dataset.sequences(
    input.draws.map(({ row }) => row),
    tokenizer,
  );
  const samples = input.draws.map(({ draw, row }, i): Sample => {
    const { prompt, response } = at(sequences, i);
    if (response === undefined) throw new RangeError(`row ${row} of an sft dataset has no response`);
    return {
      draw,
      row,
      prompt,
      response,
      rolloutLogProbs: new Float32Array(response.length),
      mask: new Uint8Array(response.length).fill(1),
      score: 0,
      stopReason: 1,
      columns: {},
    };
  });
  const draws = input.draws.map(({ draw, row }, i) => ({ draw, row, fate: 'trained' as const, samples: [i] }));
  return { samples, draws, failed: 0, total: samples.length };
}

/** Optimiser steps as ranges of micro-batches, micro-batches as lists of samples. */
interface StepPlan {
  readonly steps: readonly number[][];
  readonly micros: readonly number[][];
}

/** The plan by which a batch is trained on. It differs from `plan`, in which every sample occurs, with policy filtration. */
function planTraining(input: AdvantageInput, samples: readonly Sample[], plan: StepPlan): StepPlan {
  const { pfPpo, seed } = input.algorithm;
  if (pfPpo === undefined || samples.length === 0) return plan;
  const weights_S = pfPpoWeights(
    samples.map(({ score }) => score),
    pfPpo,
  );
  const drawSeed = { key: [at(seed, 0), resamplingPurpose], counter: [input.iteration, 0, 0] } as const;
  return planSteps(input, samples, drawWithReplacement(weights_S, samples.length, drawSeed));
}

/** Second word of the key of the random numbers. Sampling responses uses 1 and 2. */
const resamplingPurpose = 3;

/** `places`: the sample that takes the place of each one; by default itself. */
function planSteps(input: AdvantageInput, samples: readonly Sample[], places?: Int32Array): StepPlan {
  const { algorithm, iteration } = input;
  const minis = miniBatches(
    samples.map((sample) => sample.draw),
    {
      promptsPerMiniBatch: algorithm.miniBatchPrompts,
      epochs: algorithm.epochs,
      shuffle: algorithm.shuffle,
      seed: [...algorithm.seed, iteration],
    },
  );
  const micros: number[][] = [];
  const steps = minis.map(({ samples: planned }) => {
    const members = places === undefined ? planned : planned.map((b) => at(places, b)).sort((a, b) => a - b);
    const limit = algorithm.maxTokensPerMicroBatch;
    const units = algorithm.layout === 'prefixTree' ? groupUnits(samples, members, limit) : members.map((b) => [b]);
    const lengths = units.map((unit) => tokensOf(samples, unit));
    return packMicroBatches(lengths, limit).map((part) => micros.push(part.flatMap((i) => at(units, i))) - 1);
  });
  return { steps, micros };
}

/** Groups of samples that share a prompt, cut where one with its prompt would exceed the token limit. */
function groupUnits(samples: readonly Sample[], members: readonly number[], limit: number): number[][] {
  const units: number[][] = [];
  for (const b of members) {
    const unit = units.at(-1);
    const isSameGroup = unit !== undefined && at(samples, at(unit, 0)).draw === at(samples, b).draw;
    if (isSameGroup && tokensOf(samples, [...unit, b]) <= limit) unit.push(b);
    else units.push([b]);
  }
  return units;
}

/** Tokens of samples that share the prompt of the first one. */
function tokensOf(samples: readonly Sample[], unit: readonly number[]): number {
  return unit.reduce((sum, b) => sum + at(samples, b).response.length, at(samples, at(unit, 0)).prompt.length);
}

function stepsOf({ steps, micros }: StepPlan): Pick<Layout, 'stepOffsets_U1' | 'microOffsets_M1' | 'microSamples'> {
  return {
    stepOffsets_U1: offsetsOf(steps.map((step) => step.length)),
    microOffsets_M1: offsetsOf(micros.map((micro) => micro.length)),
    microSamples: Int32Array.from(micros.flat()),
  };
}

function layOut(samples: readonly Sample[], plan: StepPlan): Layout {
  const offsets_S1 = offsetsOf(samples.map(({ prompt, response }) => prompt.length + response.length));
  const scoredOffsets_S1 = offsetsOf(samples.map(({ response }) => response.length));
  const tokens_N = new Int32Array(at(offsets_S1, -1));
  const scored_T = new Int32Array(at(scoredOffsets_S1, -1));
  const rolloutLogProbs_T = new Float32Array(scored_T.length);
  const mask_T = new Uint8Array(scored_T.length);
  samples.forEach(({ prompt, response, rolloutLogProbs, mask }, b) => {
    const start = at(offsets_S1, b);
    const scoredStart = at(scoredOffsets_S1, b);
    tokens_N.set(prompt, start);
    tokens_N.set(response, start + prompt.length);
    rolloutLogProbs_T.set(rolloutLogProbs, scoredStart);
    mask_T.set(mask, scoredStart);
    for (let t = 0; t < response.length; t++) scored_T[scoredStart + t] = start + prompt.length + t;
  });
  return {
    tokens_N,
    offsets_S1,
    scored_T,
    scoredOffsets_S1,
    mask_T,
    rolloutLogProbs_T,
    ...stepsOf(plan),
  };
}

function advantagesOf(
  input: AdvantageInput,
  samples: readonly Sample[],
  layout: Layout,
  { scores_S: rewards_S, rewards_T }: BatchRewards,
): Pick<BatchTensors, 'advantages_T' | 'returns_T' | 'rewards_S'> {
  const tokens = layout.scored_T.length;
  if (input.kind === 'sft' || samples.length === 0) {
    return { advantages_T: new Float32Array(tokens), returns_T: new Float32Array(tokens), rewards_S };
  }
  const rows = rowsOf(layout);
  const { advEstimator, normAdvByStd, gamma, lam } = input.algorithm;
  const { advantages_T, returns_T } = advantageEstimator(advEstimator).compute(
    {
      rows,
      rewards_T,
      groups_S: samples.map((sample) => sample.draw),
      values_T: layout.values_T,
      greedyBaselines_S: baselinesOf(samples),
    },
    { normAdvByStdInGrpo: normAdvByStd, gamma, lam },
  );
  return { advantages_T: Float32Array.from(advantages_T), returns_T: Float32Array.from(returns_T), rewards_S };
}

/** Undefined when the samples have none. */
function baselinesOf(samples: readonly Sample[]): Float64Array | undefined {
  const baselines = samples.flatMap(({ baseline }) => baseline ?? []);
  return baselines.length === samples.length ? Float64Array.from(baselines) : undefined;
}

const stepsBefore = ({ before }: AdvantageInput, component: string): number => before.optimizerSteps[component] ?? 0;

/** Optimiser steps of a component. All take the same, but for the policy while the critic warms up. */
function stepsOf({ iteration, algorithm }: AdvantageInput, component: string, steps: number): number {
  return component === 'actor' && iteration < (algorithm.criticWarmup ?? 1) ? 0 : steps;
}

/** How each component is trained on the batch. */
function trainedBy(input: AdvantageInput, steps: number): Record<string, BatchComponent> {
  const { critic, ...actor } = input.algorithm;
  const settings = { actor, ...(critic && { critic }) };
  return mapComponents(settings, ({ loss, optimizer, schedule }, name) => {
    const rate = (s: number) => schedule.lr * lrFactor(schedule, stepsBefore(input, name) + s);
    const length = stepsOf(input, name, steps);
    return { learningRates: Array.from({ length }, (_, s) => rate(s)), loss, optimizer };
  });
}

function countersAfter(input: AdvantageInput, steps: number, { controllers }: BatchRewards): Counters {
  const names = ['actor', ...(input.algorithm.critic ? ['critic'] : [])];
  const planned = names.map((name) => [name, stepsBefore(input, name) + stepsOf(input, name, steps)]);
  return {
    ...input.before,
    cursor: input.cursorAfter,
    optimizerSteps: Object.fromEntries(planned),
    controllers: { ...input.before.controllers, ...controllers },
  };
}
