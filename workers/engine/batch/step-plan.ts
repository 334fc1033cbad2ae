/** How a batch is divided into optimiser steps and micro-batches. */
import { at } from '../../../core/at.ts';
import { packMicroBatches } from '../../../core/rl/balance/pack-micro-batches.ts';
import { miniBatches } from '../../../core/rl/mini-batches.ts';
import { drawWithReplacement, pfPpoWeights } from '../../../core/rl/pf-ppo.ts';
import type { Numbers } from '../../../core/rl/ragged.ts';
import { runKinds } from '../../../core/run-kinds.ts';
import type { AdvantageInput } from '../../../core/wire/jobs/index.ts';
import { readsGroups, wholeGroups } from './groups.ts';
import type { Sample } from '../samples/samples.ts';

/** Optimiser steps as ranges of micro-batches, micro-batches as lists of samples. */
export interface StepPlan {
  readonly steps: readonly number[][];
  readonly micros: readonly number[][];
}

/**
 * The plan by which a batch is trained on. It differs from `plan`, in which every sample occurs, with policy
 * filtration.
 */
export function planTraining(
  input: AdvantageInput,
  samples: readonly Sample[],
  plan: StepPlan,
  scores_S: Numbers,
): StepPlan {
  const { pfPpo, seed } = input.algorithm;
  if (pfPpo === undefined || samples.length === 0) return plan;
  const weights_S = pfPpoWeights(scores_S, pfPpo);
  const drawSeed = { key: [at(seed, 0), resamplingPurpose], counter: [input.iteration, 0, 0] } as const;
  return planSteps(input, samples, drawWithReplacement(weights_S, samples.length, drawSeed));
}

/** Second word of the key of the random numbers. Sampling responses uses 1 and 2. */
const resamplingPurpose = 3;

/** `places`: the sample that takes the place of each one; by default itself. */
export function planSteps(input: AdvantageInput, samples: readonly Sample[], places?: Int32Array): StepPlan {
  const { algorithm, iteration, kind } = input;
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
    const isTree = algorithm.layout === 'prefixTree';
    const lengthOf = (unit: readonly number[]) => (isTree ? tokensOf(samples, unit) : flatTokens(samples, unit));
    const unitsOf = (some: readonly number[]) => (isTree ? groupUnits(samples, some, limit) : some.map((b) => [b]));
    const isWhole = readsGroups(algorithm) || runKinds[kind].rows === 'pairs';
    const most = algorithm.sequencesPerMicroBatch ?? Number.POSITIVE_INFINITY;
    const parts = isWhole
      ? fewGroups(wholeGroups(samples, members, limit, lengthOf), most)
      : slices(members, most).map(unitsOf);
    return parts.flatMap((units) =>
      packMicroBatches(units.map(lengthOf), limit).map((part) => micros.push(part.flatMap((i) => at(units, i))) - 1),
    );
  });
  return { steps, micros };
}

/** Neighbours, so many at a time; the last slice may be shorter. */
function slices(members: readonly number[], most: number): number[][] {
  const found: number[][] = [];
  for (let start = 0; start < members.length; start += most) found.push(members.slice(start, start + most));
  return found;
}

/** Neighbouring groups with so many samples together, or one that has more by itself. */
function fewGroups(groups: readonly number[][], most: number): number[][][] {
  const found: number[][][] = [];
  let room = 0;
  for (const group of groups) {
    const last = found.at(-1);
    if (last !== undefined && group.length <= room) last.push(group);
    else found.push([group]);
    room = (last === undefined || group.length > room ? most : room) - group.length;
  }
  return found;
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

const flatTokens = (samples: readonly Sample[], unit: readonly number[]): number =>
  unit.reduce((sum, b) => sum + tokensOf(samples, [b]), 0);
