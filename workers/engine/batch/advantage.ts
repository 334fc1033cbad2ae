/** The advantage stage: from scored samples, or rows to learn, to a closed batch. */
import { samplesResponses } from '../../../core/run-kinds.ts';
import { at } from '../../../core/at.ts';
import { mapComponents } from '../../../core/records/components.ts';
import type { Counters } from '../../../core/records/schema.ts';
import { offsetsOf } from '../../../core/offsets.ts';
import { inOrder, allOf } from '../../../core/parallel.ts';
import { float32 } from '../../../core/rl/float32.ts';
import { lrFactor } from '../../../core/rl/lr-schedule.ts';
import type { AdvantageInput, AdvantageOutput, BatchComponent, ScoredSamples } from '../../../core/wire/jobs/index.ts';
import { parseScoreTable } from '../../../core/wire/score-table.ts';
import { getBlob, getJsonBlob } from '../../../log/objects/blobs.ts';
import { mostBatchBytes } from '../../../models/batch-shards.ts';
import type { BatchTensors } from '../../../models/batch-tensors.ts';
import { decodeTrajectories } from '../../../models/trajectories.ts';
import { padTokenOf } from '../../../models/config.ts';
import type { Sequence } from '../../../models/dataset-rows.ts';
import { readConfigJson } from '../../../models/folder.ts';
import { layOut, offsetsOfPlan, samplesIn } from './batch-layout.ts';
import { batchMetrics } from './batch-metrics.ts';
import { withOutputs } from './batch-outputs.ts';
import type { Layout, MadeOutputs } from './batch-outputs.ts';
import { correctedRollout } from './corrected-rollout.ts';
import type { CorrectedLayout } from './corrected-rollout.ts';
import { tokenizerOf } from '../../../models/loaded-tokenizers.ts';
import { curriculumOfBatch } from './curriculum.ts';
import { groupsOf } from './groups.ts';
import { withModelScores } from './model-scores.ts';
import type { EngineHost } from '../host/host.ts';
import type { JobContext } from '../job/context.ts';
import type { ScoredComposition } from './model-scores.ts';
import { numbersToJson } from '../samples/json-numbers.ts';
import type { RunEstimator } from '../job/own-modules.ts';
import { samplingOfBatch } from './own-sampler.ts';
import { trackedPrompts } from './prompt-trackers.ts';
import type { TrackedBatch } from './prompt-trackers.ts';
import { rewardsOf } from './rewards.ts';
import type { BatchRewards } from './rewards.ts';
import { rowSequences } from '../samples/row-sequences.ts';
import { rowsOf } from '../samples/rows.ts';

import { isOfAdvantages, learnsFirst, primeTensors } from '../losses/prime.ts';
import { StageTimer } from '../job/stage-timer.ts';
import { trainedSettings } from './trained-components.ts';
import { compose, sampledOf } from '../samples/samples.ts';
import type { Composition, Sample, ScoredDraws, ScoredPart, ScoredResponses } from '../samples/samples.ts';
import { planSteps, planTraining } from './step-plan.ts';
import type { StepPlan } from './step-plan.ts';
import { storeBatch } from '../samples/stored-batch.ts';

export async function advantage(
  host: EngineHost,
  input: AdvantageInput,
  context: JobContext,
): Promise<AdvantageOutput> {
  const timer = new StageTimer(context);
  const { composition, modelScores_S, plan, layout, scored } = await composed(host, input, context, timer);
  const outputs = await withOutputs(host, input, context, layout, plan.steps.length, timer);
  const store = await host.store(context.store);
  const corrected = correctedRollout(input.algorithm, outputs.layout);
  const { samples } = composition;
  const { rewards, tracked, advantages } = await rewarded(host, input, context, samples, outputs, corrected, timer);
  const controllers = {
    ...(tracked?.controllers ?? input.before.controllers),
    ...rewards.controllers,
    ...(await curriculumOfBatch(store, context.runId, input, scored)),
    ...(await samplingOfBatch(host, input, context, scored)),
  };
  const made = {
    ...corrected.layout,
    ...offsetsOfPlan(planTraining(input, samples, plan, rewards.scores_S)),
    ...advantages,
    ...groupsOf(input.algorithm, samples),
  };
  const ofPrime = primeTensors(input.algorithm, samples, made, outputs.rewardModelLogProbs_T);
  const batch = { ...made, ...ofPrime.tensors, ...(modelScores_S && { modelScores_S }) };
  const { epochs } = input.algorithm;
  const { mostBatchBytes: mostBytes = mostBatchBytes } = host.options;
  const stored = await storeBatch(store, context.runId, batch, input, { epochs, mostBytes });
  timer.end('timing_s/adv');
  return {
    ...stored,
    oldLogProbs: batch.oldLogProbs_T === undefined ? 'on-policy' : 'stored',
    ...(input.algorithm.layout && { layout: input.algorithm.layout }),
    components: trainedBy(input, plan.steps.length, await padConstant(host, input, context)),
    draws: composition.draws,
    ...(input.values && { values: input.values }),
    after: countersAfter(input, plan.steps.length, controllers),
    metrics: numbersToJson({
      ...metricsOf(input, composition, batch, rewards, outputs),
      ...tracked?.metrics,
      ...corrected.metrics,
      ...ofPrime.metrics,
    }),
  };
}

/** The metrics of the batch, without those of advantages when the update makes them. */
function metricsOf(...of: Parameters<typeof batchMetrics>): Record<string, number> {
  const all = batchMetrics(...of);
  const [input] = of;
  if (!learnsFirst(input.algorithm.rewardModel?.loss)) return all;
  return Object.fromEntries(Object.entries(all).filter(([name]) => !isOfAdvantages(name)));
}

interface Composed extends ScoredComposition {
  readonly plan: StepPlan;
  readonly layout: Layout;
  /** The scores of every draw that was sampled. */
  readonly scored: readonly ScoredDraws[];
}

/** The samples of the batch side by side. The trajectories that they are from can be freed when this returns. */
async function composed(
  host: EngineHost,
  input: AdvantageInput,
  context: JobContext,
  timer: StageTimer,
): Promise<Composed> {
  const parts = await readParts(host, input, context);
  const found = samplesResponses(input.kind)
    ? compose(input, parts, context.runId)
    : await rowsToLearn(host, input, context);
  const { composition, ...scores } = await withModelScores(host, input, context, found, timer);
  const plan = planSteps(input, composition.samples);
  const layout = layOut(composition.samples, plan);
  const samples = samplesIn(layout, composition.samples);
  const scored = parts.map(({ trajectories: { drawOffsets_G1, draw_S, row_S }, scores }) => {
    return { trajectories: { drawOffsets_G1, draw_S, row_S }, scores };
  });
  return { composition: { ...composition, samples }, ...scores, plan, layout, scored };
}

/** The rewards and advantages. The rewards of tokens, as many numbers as tokens, are needed only for the latter. */
async function rewarded(
  host: EngineHost,
  input: AdvantageInput,
  context: JobContext,
  samples: readonly Sample[],
  outputs: MadeOutputs,
  corrected: CorrectedLayout,
  timer: StageTimer,
) {
  const { rewards_T, ...rewards } = rewardsOf(input, samples, outputs.layout);
  const tracked = await trackedPrompts(host, input, context, samples, outputs.layout, rewards.scores_S, timer);
  const estimator = host.own.estimator(await host.store(context.store), context.runId, input);
  const advantages = await advantagesOf(
    ...[estimator, input, samples, corrected.layout, { ...rewards, rewards_T }, { ...outputs, ...tracked }],
  );
  return { rewards, tracked, advantages };
}

/** Objects that are read at once: a few hide the way to the store, and more would only take memory. */
const partsAtOnce = 8;

/** The trajectories of a batch with their scores, in order: only what a batch is made from is kept. */
export async function readParts(
  host: EngineHost,
  input: Pick<AdvantageInput, 'parts'>,
  context: JobContext,
): Promise<ScoredPart[]> {
  const store = await host.store(context.store);
  const read = async ({ trajectories, scores }: Omit<ScoredSamples, 'baseline'>): Promise<ScoredResponses> => {
    const [samples, table] = await allOf([
      getBlob(store, context.runId, trajectories).then((bytes) => decodeTrajectories(bytes, trajectories)),
      getJsonBlob(store, context.runId, scores).then((json) => parseScoreTable(json, scores)),
    ]);
    return { trajectories: sampledOf(samples), scores: table };
  };
  const parts = inOrder(input.parts, partsAtOnce, async ({ wave = 0, baseline, ...part }): Promise<ScoredPart> => {
    const [own, greedy] = await allOf([read(part), baseline && read(baseline)]);
    return { wave, ...own, ...(greedy && { baseline: { scores: greedy.scores } }) };
  });
  const found: ScoredPart[] = [];
  for await (const part of parts) found.push(part);
  return found;
}

/** Rows with responses: every draw is one sample, or the two of a pair, the chosen one first. */
async function rowsToLearn(host: EngineHost, input: AdvantageInput, context: JobContext): Promise<Composition> {
  const dataset = await host.dataset(context, input.inputs.train);
  const folder = await host.modelFolder(context, input.inputs.model, 'text');
  const rows = input.draws.map(({ row }) => row);
  const sequences = await rowSequences(dataset, rows, await tokenizerOf(folder), folder);
  const perDraw = input.algorithm.samplesPerDraw;
  const groups = input.draws.map(({ draw, row }, i) => {
    const given = responsesOf(at(sequences, i));
    if (given.length !== perDraw) throw new RangeError(`row ${row} has ${given.length} responses, not ${perDraw}`);
    return given.map(({ prompt, response }) => givenSample(draw, row, prompt, response));
  });
  const samples = groups.flat();
  const offsets = offsetsOf(groups.map((group) => group.length));
  const places = (i: number) => at(groups, i).map((_, s) => at(offsets, i) + s);
  const draws = input.draws.map(({ draw, row }, i) => ({ draw, row, fate: 'trained' as const, samples: places(i) }));
  return { samples, draws, failed: 0, total: samples.length };
}

function responsesOf({ prompt, response, rejected }: Sequence): { prompt: Int32Array; response: Int32Array }[] {
  return [...(response === undefined ? [] : [{ prompt, response }]), ...(rejected === undefined ? [] : [rejected])];
}

function givenSample(draw: number, row: number, prompt: Int32Array, response: Int32Array): Sample {
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
}

/** A reward model is read before the pad tokens at the end; the record holds which token that is. */
async function padConstant(
  host: EngineHost,
  { kind, inputs }: AdvantageInput,
  context: JobContext,
): Promise<Record<string, number> | undefined> {
  if (kind !== 'rm') return undefined;
  const padToken = padTokenOf(await readConfigJson(await host.modelFolder(context, inputs.model, 'text')));
  return padToken === undefined ? undefined : { padToken };
}

async function advantagesOf(
  estimator: RunEstimator,
  input: AdvantageInput,
  samples: readonly Sample[],
  layout: Layout,
  { rewards_T, components }: BatchRewards,
  { sumPiSquared_T, promptValues_S }: MadeOutputs & Partial<TrackedBatch>,
): Promise<Pick<BatchTensors, 'advantages_T' | 'returns_T' | 'rewards_S'>> {
  const rewards_S = Float32Array.from(samples, (sample) => sample.score);
  const tokens = layout.scored_T.length;
  const isLater = input.algorithm.rewardModel !== undefined;
  if (!samplesResponses(input.kind) || samples.length === 0 || isLater) {
    return { advantages_T: new Float32Array(tokens), returns_T: new Float32Array(tokens), rewards_S };
  }
  const rows = rowsOf(layout);
  const { normAdvByStd, gamma, lam, vapo, components: named } = input.algorithm;
  const { advantages_T, returns_T } = await estimator.compute(
    {
      rows,
      rewards_T,
      groups_S: samples.map((sample) => sample.draw),
      values_T: layout.values_T,
      greedyBaselines_S: baselinesOf(samples),
      oldLogProb_T: layout.oldLogProbs_T,
      sumPiSquared_T,
      promptValues_S,
      rolloutIsWeights_T: layout.rolloutIsWeights_T,
      components,
    },
    {
      normAdvByStdInGrpo: normAdvByStd,
      gamma,
      lam,
      vapo,
      gdpoRewardKeys: named?.keys,
      gdpoRewardWeights: named?.weights,
    },
  );
  const single_T = float32(advantages_T);
  return { advantages_T: single_T, returns_T: returns_T === advantages_T ? single_T : float32(returns_T), rewards_S };
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

/** How each component is trained on the batch. `constants`: what a loss needs to know of the model. */
function trainedBy(
  input: AdvantageInput,
  steps: number,
  constants: Record<string, number> | undefined,
): Record<string, BatchComponent> {
  return mapComponents(trainedSettings(input), ({ loss, optimizer, schedule }, name) => {
    const rate = (s: number) => schedule.lr * lrFactor(schedule, stepsBefore(input, name) + s);
    const length = stepsOf(input, name, steps);
    return {
      learningRates: Array.from({ length }, (_, s) => rate(s)),
      loss: { ...loss, ...(constants && { constants: { ...loss.constants, ...constants } }) },
      optimizer,
    };
  });
}

function countersAfter(input: AdvantageInput, steps: number, controllers: Counters['controllers']): Counters {
  const names = Object.keys(trainedSettings(input));
  const planned = names.map((name) => [name, stepsBefore(input, name) + stepsOf(input, name, steps)]);
  return {
    ...input.before,
    cursor: input.cursorAfter,
    optimizerSteps: Object.fromEntries(planned),
    controllers,
  };
}
