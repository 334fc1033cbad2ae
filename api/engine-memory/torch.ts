/**
 * Memory of the torch engine (engines/torch/), which divides each model over R ranks by FSDP2. With P parameters, T of
 * them learning (of an adapter only its own), c bytes of a value in products (2 in bf16, 4 in fp32), a layer and the
 * rest (embedding, last norm, head) counted in elements, and N tokens of a pack, a rank holds
 *
 *   weights      4 P / R           fp32 masters (state.py), and the adapter's
 *   gradients    4 T / R           summed in fp32 (`reduce_dtype` in model.py), until the step
 *   moments      8 T / R           m and v (`Piece` in state.py)
 *   critic       as weights, gradients and moments, for each further model that learns
 *   reference    4 P / R + c rest  for each frozen model; FSDP2 keeps the rest gathered after a pass
 *   teacher      the same, of its own shape
 *   gathered     c (rest + 2 layer)  a layer exists twice while it is gathered: the buffer, and what is copied from it
 *   activations  of pass.ts: on a processor all that a pass keeps where there is room for it; on a card the least that
 *                it can do with, since layers are computed again before a card is full
 *   head         28 V rows         the chunk's fp32 arrays in the backward pass of head.py; at most 4,096 rows, and
 *                1 GiB, on a card 4 GiB
 *   reduction    (c + 4) layer + c rest  gradients before they are divided; of experts they exist twice
 *   step         16 elements of the largest tensor / R  the norm of the gradient is summed in fp64 (training.py)
 *   loading      4 P               the whole copy that each rank loads (folder.py), in the machine's memory
 *   snapshot     12 T              the copy of a state while its checkpoint is written, in shared memory
 *   libraries    for each rank of each model: Python with torch and transformers
 *
 * They are not all there at once: the plan has the moment at which they are most, of loading, the backward pass of the
 * head, that of the last layer, that of the embedding, and the step. A checkpoint is written while the run goes on.
 */
import { cardName, ownMemory } from '../../core/ports/engine-plans.ts';
import type { DevicePlan, EnginePlans, ProcessWanted } from '../../core/ports/engine-plans.ts';
import { elementsOf, parametersOf } from '../../models/decoder-shape.ts';
import type { DecoderShape, LayerShape } from '../../models/decoder-shape.ts';
import { adapterElements } from './adapter.ts';
import { readModelFacts, shapeOf } from './model-facts.ts';
import { added, fullest, times } from './moments.ts';
import type { Parts } from './moments.ts';
import { keptBytes, leastBytes, scoreBytes } from './pass.ts';
import { refuseStateLayers } from './state-layers.ts';

const mib = 2 ** 20;

/**
 * Resident memory of ranks before they have a model: of each one Python, torch, transformers and peft; and code that
 * all of a machine share. Measured on processors.
 */
export const rankBytes = 420 * mib;
export const sharedBytes = 320 * mib;

/** The head's arrays in its backward pass, of one chunk: bytes of a row and word, and the bounds (head.py). */
const headBytes = 28;
const headRows = 4096;
const headMost = { processor: 2 ** 30, card: 2 ** 32 };

export const torchPlans: EnginePlans = {
  async readModel(model) {
    const facts = await readModelFacts(model);
    await refuseStateLayers(model);
    return facts;
  },
  async plan(wanted): Promise<readonly DevicePlan[]> {
    const shape = await shapeOf(wanted.model);
    if (shape === undefined) return [];
    const teacher = wanted.teacher && (await shapeOf(wanted.teacher));
    return devicesOf(wanted, momentsOf(wanted, shape, teacher), hostOf(wanted, shape, teacher));
  },
};

/** On a processor all ranks share the machine's memory; on cards, rank r has card r. */
function devicesOf({ ranks, cardBytes }: ProcessWanted, moments: Moments, host: Host): DevicePlan[] {
  const loading = times(ranks, host.loading);
  if (cardBytes === undefined) {
    const computing = added(times(ranks, fullest(moments.computing)), host.writing);
    const parts = fullest([added(times(ranks, moments.loading), loading), computing]);
    return [{ device: ownMemory, parts: added(parts, host.always) }];
  }
  const rank = fullest([moments.loading, ...moments.computing]);
  const cards = Array.from({ length: ranks }, (_, index) => ({ device: cardName(index), parts: rank }));
  return [...cards, { device: ownMemory, parts: added(fullest([loading, host.writing]), host.always) }];
}

/** What a rank holds at each moment, beside its libraries. */
interface Moments {
  readonly loading: Parts;
  readonly computing: readonly Parts[];
}

/** What is in the machine's memory whatever computes. */
interface Host {
  /** What each rank has while a folder is loaded. */
  readonly loading: Parts;
  /** What the group has while a checkpoint is written. */
  readonly writing: Parts;
  readonly always: Parts;
}

function hostOf(wanted: ProcessWanted, shape: DecoderShape, teacher: DecoderShape | undefined): Host {
  const models = wanted.trained + wanted.frozen + (teacher === undefined ? 0 : 1);
  return {
    loading: { loading: 4 * Math.max(parametersOf(shape), teacher === undefined ? 0 : parametersOf(teacher)) },
    writing: { snapshot: wanted.trained * 12 * learningOf(wanted, shape) },
    always: { libraries: models * wanted.ranks * rankBytes + sharedBytes },
  };
}

function momentsOf(wanted: ProcessWanted, shape: DecoderShape, teacher: DecoderShape | undefined): Moments {
  const { trained, frozen, ranks } = wanted;
  const c = wanted.compute === 'bf16' ? 2 : 4;
  const learning = learningOf(wanted, shape);
  const all = parametersOf(shape) + (wanted.adapter === undefined ? 0 : learning);
  const weights = (4 * all) / ranks;
  const kept = {
    moments: trained > 0 ? (8 * learning) / ranks : 0,
    gradients: trained > 0 ? (4 * learning) / ranks : 0,
  };
  const further = Math.max(0, trained - 1);
  const frozenBytes = (of: DecoderShape) => (4 * parametersOf(of)) / ranks + c * elementsOf(of.rest);
  const resident: Parts = {
    weights,
    moments: kept.moments,
    critic: further * (weights + kept.moments + kept.gradients),
    reference: frozen * frozenBytes(shape),
    teacher: teacher === undefined ? 0 : frozenBytes(teacher),
  };
  if (trained === 0) return { loading: resident, computing: [resident] };
  const computing = computingOf(wanted, shape, c).map((parts) => added(resident, { gradients: kept.gradients }, parts));
  return { loading: resident, computing };
}

/** What computing adds: in the head's backward pass, in the last layer's, in the embedding's, and in a step. */
function computingOf({ tokens, ranks, adapter, cardBytes }: ProcessWanted, shape: DecoderShape, c: number): Parts[] {
  const rest = elementsOf(shape.rest);
  const layer = Math.max(...shape.layers.map(({ parameters }) => elementsOf(parameters)));
  const onCards = cardBytes !== undefined;
  const activations = (onCards ? leastBytes : keptBytes)(shape, tokens, c) + scoreBytes(shape, tokens, onCards);
  const ofHead = adapter === undefined ? c * shape.vocab * shape.hidden : 0;
  const largest = Math.max(...everyTensor(shape).map((one) => elementsOf([one])));
  return [
    { gathered: c * rest, activations, head: headOf(shape.vocab, tokens, onCards), reduction: ofHead },
    {
      gathered: c * (rest + 2 * layer),
      activations,
      reduction: ofHead + (adapter === undefined ? gradientsOfLayer(shape, c) : 0),
    },
    { gathered: c * rest, reduction: adapter === undefined ? (2 * c + 4) * rest : 0 },
    { step: adapter === undefined ? (16 * largest) / ranks : 0 },
  ];
}

function headOf(vocab: number, tokens: number, onCards: boolean): number {
  const fitting = Math.floor((onCards ? headMost.card : headMost.processor) / (headBytes * vocab));
  return headBytes * vocab * Math.min(tokens, headRows, Math.max(1, fitting));
}

/** Each expert's gradient is one of all experts of the layer, added to that of the others. */
function gradientsOfLayer({ layers }: DecoderShape, c: number): number {
  return Math.max(
    ...layers.map(({ parameters }) => {
      const experts = elementsOf(parameters.filter((one) => one.experts !== undefined));
      return (c + 4) * elementsOf(parameters) + c * experts;
    }),
  );
}

const everyTensor = ({ layers, rest }: DecoderShape): LayerShape['parameters'] => [
  ...layers.flatMap(({ parameters }) => parameters),
  ...rest,
];

function learningOf({ adapter }: Pick<ProcessWanted, 'adapter'>, shape: DecoderShape): number {
  return adapter === undefined ? parametersOf(shape) : adapterElements(shape, adapter);
}
