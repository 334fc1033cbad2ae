/**
 * Memory of the samplers that run beside a trainer: hf is one process of Python, vLLM one for each card. With P
 * parameters, c bytes of a value in products, S samples at once (of vLLM: on each card) of at most L tokens, and K
 * values that a cache keeps for a position of a layer:
 *
 *   weights     hf: 4 P, and in bf16 2 P that compute (decoding.py). vllm: c P, divided over the cards of a model
 *   hostCopy    vllm: 4 P, the published weights in a file in memory, which its processes share (weights.py); in bf16
 *               less from the first update on. Of an adapter only its own
 *   probe       vllm: c P, transformers' model with the same weights, which scores the first samples (sampling.py)
 *   adapter     hf: of a model with an adapter its base as above, and 4 T of the adapter
 *   kvCache     c K layers S L. vllm: blocks of 128 tokens and one more for each sample, at most 40 % of what is free
 *               (sampling.py), and at least one sample's. hf: twice a layer's, since its cache grows by copies
 *   activations a step: vllm of 8,192 tokens, hf of the longest prompt; and 16 V S for the logits of the samples
 *   loading     4 elements of the largest tensor: a folder is read tensor by tensor
 *   libraries   Python with torch and transformers, or with vLLM
 */
import { cardName, ownMemory } from '../../core/ports/engine-plans.ts';
import type { DevicePlan, EnginePlans, ProcessWanted } from '../../core/ports/engine-plans.ts';
import { parametersOf } from '../../models/decoder-shape.ts';
import type { DecoderShape } from '../../models/decoder-shape.ts';
import { adapterElements } from './adapter.ts';
import { readModelFacts, shapeOf } from './model-facts.ts';
import { added, fullest, sumOf } from './moments.ts';
import type { Parts } from './moments.ts';
import { keptOfLayer } from './pass.ts';
import { largestOf, rankBytes, sharedBytes } from './torch.ts';

const mib = 2 ** 20;

/** Resident memory of vLLM's process before it has a model. Measured on processors. */
const vllmBytes = 900 * mib;

/** MOST_TOKENS and KEYS_AND_VALUES of engines/vllm/petrel_vllm/sampling.py. */
const stepTokens = 8192;
const cacheShare = 0.4;
/** Positions of a block of vLLM's cache, at most. */
const blockTokens = 128;

export const hfPlans: EnginePlans = samplerPlans((wanted, shape, sizes) => {
  const { weights, copies, adapter, loading, oneToken, step, room } = sizes;
  const cache = room.maxSeqs * room.maxModelLen * oneToken;
  const model: Parts = { weights, copies, adapter };
  const computing = added(model, {
    kvCache: cache + (2 * cache) / shape.layers.length,
    activations: step(room.maxModelLen),
  });
  const library = { libraries: rankBytes + sharedBytes };
  if (wanted.cardBytes === undefined)
    return [{ device: ownMemory, parts: added(fullest([added(model, { loading }), computing]), library) }];
  return [
    { device: cardName(0), parts: computing },
    { device: ownMemory, parts: added({ loading }, library) },
  ];
});

/** Number of vLLMs, which divide the samples. */
const copiesOf = ({ cardBytes, cards = 1, tensorParallel = 1 }: ProcessWanted): number =>
  cardBytes === undefined ? 1 : Math.max(1, Math.floor(cards / tensorParallel));

export const vllmPlans: EnginePlans = samplerPlans((wanted, _shape, sizes) => {
  const { tensorParallel = 1 } = wanted;
  const { weights, adapter, loading, compute, oneToken, step, room } = sizes;
  const host: Parts = { hostCopy: adapter > 0 ? adapter : weights };
  const probe: Parts = { probe: compute };
  const onCards = wanted.cardBytes !== undefined;
  const bytes = wanted.cardBytes ?? wanted.machineBytes;
  const model: Parts = { weights: compute / tensorParallel };
  const taken = onCards ? sumOf(model) : compute + sumOf(host);
  const share = onCards ? cacheShare : cacheShare / tensorParallel;
  const blocks = Math.ceil(room.maxModelLen / blockTokens) + 1;
  const ofToken = oneToken / tensorParallel;
  const most = (room.maxSeqs + 1) * blocks * blockTokens * ofToken;
  const cache = Math.max(room.maxModelLen * ofToken, Math.min(most, share * Math.max(0, bytes - taken)));
  const computing = added(model, { kvCache: cache, activations: step(Math.max(stepTokens, room.maxModelLen)) });
  const processes = copiesOf(wanted) * tensorParallel;
  // Processes of a divided model have one that leads them.
  const leaders = tensorParallel > 1 ? copiesOf(wanted) : 0;
  const library = { libraries: (processes + leaders) * vllmBytes };
  if (!onCards) {
    const everyOne = Array<Parts>(tensorParallel).fill(computing);
    const parts = fullest([added(host, { loading }), added(host, probe, ...everyOne)]);
    return [{ device: ownMemory, parts: added(parts, library) }];
  }
  return [
    ...Array.from({ length: processes }, (_, card) => ({ device: cardName(card), parts: computing })),
    { device: ownMemory, parts: added(host, probe, library) },
  ];
}, copiesOf);

interface SamplerSizes {
  /** The model in fp32, and what hf computes with in bf16. */
  readonly weights: number;
  readonly copies: number;
  /** The model in the type of its products. */
  readonly compute: number;
  readonly adapter: number;
  readonly loading: number;
  /** Bytes of a position in the cache of all layers. */
  readonly oneToken: number;
  /** Bytes of a step of so many tokens. */
  readonly step: (tokens: number) => number;
  readonly room: NonNullable<ProcessWanted['sampling']>;
}

function samplerPlans(
  devicesOf: (wanted: ProcessWanted, shape: DecoderShape, sizes: SamplerSizes) => readonly DevicePlan[],
  copies: (wanted: ProcessWanted) => number = () => 1,
): EnginePlans {
  return {
    readModel: readModelFacts,
    async plan(wanted) {
      const shape = await shapeOf(wanted.model);
      if (shape === undefined || wanted.sampling === undefined) return [];
      const { maxSeqs, maxModelLen } = wanted.sampling;
      const room = { maxSeqs: Math.ceil(maxSeqs / copies(wanted)), maxModelLen };
      return devicesOf(wanted, shape, sizesOf(wanted, shape, room));
    },
  };
}

function sizesOf({ compute, adapter }: ProcessWanted, shape: DecoderShape, room: SamplerSizes['room']): SamplerSizes {
  const valueBytes = compute === 'bf16' ? 2 : 4;
  const parameters = parametersOf(shape);
  const widest = Math.max(...shape.layers.map((layer) => keptOfLayer(layer, shape.hidden, valueBytes)));
  return {
    weights: 4 * parameters,
    copies: compute === 'bf16' ? 2 * parameters : 0,
    compute: valueBytes * parameters,
    loading: 4 * largestOf(shape),
    adapter: adapter === undefined ? 0 : 4 * adapterElements(shape, adapter),
    oneToken: valueBytes * shape.layers.reduce((sum, { attention }) => sum + attention.cached, 0),
    step: (tokens) => tokens * widest + 16 * shape.vocab * room.maxSeqs,
    room,
  };
}
