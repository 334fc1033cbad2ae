/**
 * Seconds of an iteration's stages on a stated machine, from its card's datasheet. With N parameters that a token is
 * multiplied with, T tokens of the batch at their longest, n tokens of a sequence, or of a pack if that has fewer, F
 * the card's peak, B its bandwidth, c bytes of a value:
 *
 *   a forward pass   T (2 N + 2 n (query + value)) / (ranks · share · F): each sequence attends by itself. A layer that
 *                    keeps its own attention (capped scores, chunks) meets the whole pack, whose mask hides most of it
 *   an update        three times a forward pass (the backward pass is two), for each epoch
 *   a rollout        steps (c W + slots K) / B for decoding, and a forward pass of the prompts: each step reads the
 *                    weights W that its samples meet, and the keys and values K of each. The samples are divided over
 *                    the cards, or over as many as share a model. Of E experts, of which a token meets k, s samples
 *                    meet E (1 - (1 - k / E)^s)
 *
 * `share` of the peak: 0.15 to 0.24 were measured with transformers' layers on an H100 (models of 0.5 and 1.5 billion
 * parameters), so a stage has the fewest and the most seconds. No record of that is kept here, and the engine itself
 * was not measured. Decoding is taken at the whole bandwidth, the fewest. Layers that are computed again, transfers
 * between cards, scorers, checkpoints, new weights and servers that sample are left out.
 */
import { tokensOfPass } from '../../core/recipe/pass.ts';
import { batchArithmetic, readsReference, samplerEngine, trainedComponents } from '../../core/recipe/index.ts';
import type { Recipe } from '../../core/recipe/index.ts';
import { samplesResponses } from '../../core/run-kinds.ts';
import type { ComputeType } from '../../core/parameters.ts';
import { activeParametersOf, elementsOf } from '../../models/decoder-shape.ts';
import type { DecoderShape, ParameterShape } from '../../models/decoder-shape.ts';
import type { Card, StatedMachine } from '../memory/cards.ts';

export interface StageSeconds {
  readonly stage: string;
  readonly fewest: number;
  readonly most: number;
}

/** Shares of the peak that were measured. */
const shares = { fewest: 0.15, most: 0.24 };

type FastCard = Required<Card>;

/** Undefined for a card of which only the memory is stated. Stages that do not compute on its cards are left out. */
export function stageSeconds(
  recipe: Recipe,
  shape: DecoderShape,
  { card, cards }: Pick<StatedMachine, 'card' | 'cards'>,
  compute: ComputeType,
): readonly StageSeconds[] | undefined {
  const { peakFlops, bandwidth } = card;
  if (peakFlops === undefined || bandwidth === undefined) return undefined;
  const of: Planned = {
    recipe,
    shape,
    card: { ...card, peakFlops, bandwidth },
    cards,
    valueBytes: compute === 'bf16' ? 2 : 4,
  };
  return [
    ...(samplesResponses(recipe.kind) && samplerEngine(recipe) === 'vllm' ? [rollout(of)] : []),
    ...(recipe.trainer.engine === 'torch' ? trainerStages(of) : []),
  ];
}

interface Planned {
  readonly recipe: Recipe;
  readonly shape: DecoderShape;
  readonly card: FastCard;
  readonly cards: number;
  readonly valueBytes: number;
}

function trainerStages({ recipe, shape, card }: Planned): StageSeconds[] {
  const { mostTokens, epochs, optimizerSteps, longestSequence, miniBatchResponses } = batchArithmetic(recipe);
  const samples = samplesResponses(recipe.kind);
  const hasCritic = trainedComponents(recipe).includes('critic');
  const pack = Math.min(tokensOfPass(recipe), miniBatchResponses * longestSequence);
  const ranks = recipe.trainer.fsdp_size;
  const stage = (name: string, passes: number): StageSeconds =>
    seconds(name, 0, (passes * mostTokens * flopsPerToken(shape, Math.min(pack, longestSequence), pack)) / ranks, card);
  return [
    ...(samples && optimizerSteps > 1 ? [stage('old log-probs', 1)] : []),
    ...(readsReference(recipe) ? [stage('reference', 1)] : []),
    ...(samples && hasCritic ? [stage('values', 1)] : []),
    stage('update', 3 * epochs),
    ...(hasCritic ? [stage('critic update', 3 * epochs)] : []),
  ];
}

function rollout({ recipe, shape, card, cards, valueBytes }: Planned): StageSeconds {
  const { responses, prompts } = batchArithmetic(recipe);
  const { max_prompt_length: prompt, max_response_length: response } = recipe.data;
  const workers = Object.values(recipe.fleet.pools).reduce(
    (sum, pool) => sum + (pool.roles.includes('rollout') ? pool.workers : 0),
    0,
  );
  const { tensor_model_parallel_size: divided, max_num_seqs: most } = recipe.rollout;
  const copies = Math.max(1, Math.floor(cards / divided));
  // Workers of one machine share its cards.
  const slots = Math.min(Math.ceil((workers * most) / copies), Math.ceil(responses / copies));
  const steps = Math.ceil(responses / (slots * copies)) * response;
  const cached = shape.layers.reduce((sum, { attention }) => sum + attention.cached, 0);
  // On average a sample has half of its response.
  const bytes = valueBytes * (elementsRead(shape, slots) + slots * (prompt + response / 2) * cached);
  const flops = (prompts * prompt * flopsPerToken(shape, prompt)) / (copies * divided);
  return seconds('rollout', (steps * bytes) / (divided * card.bandwidth), flops, card);
}

function seconds(stage: string, always: number, flops: number, { peakFlops }: FastCard): StageSeconds {
  return {
    stage,
    fewest: always + flops / (shares.most * peakFlops),
    most: always + flops / (shares.fewest * peakFlops),
  };
}

/** Operations of a forward pass for a token that meets `met` others, and `pack` in a layer with a mask of the pack. */
export function flopsPerToken(shape: DecoderShape, met: number, pack = met): number {
  const ofAttention = shape.layers.reduce((sum, { attention: { query, value, isMasked } }) => {
    return sum + 2 * (isMasked ? pack : met) * (query + value);
  }, 0);
  return 2 * activeParametersOf(shape) + ofAttention;
}

/** Elements of the weights that a step of so many samples reads. */
function elementsRead({ layers, rest, isTied }: DecoderShape, samples: number): number {
  const read = [...layers.flatMap(({ parameters }) => parameters), ...rest.slice(isTied ? 0 : 1)];
  return read.reduce((sum, one) => sum + shareRead(one, samples) * elementsOf([one]), 0);
}

function shareRead({ experts }: ParameterShape, samples: number): number {
  return experts === undefined ? 1 : 1 - (1 - experts.chosen / experts.count) ** samples;
}
