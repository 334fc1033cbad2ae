/**
 * Memory of the torch engine (engines/torch/), which divides each model over R ranks by FSDP2. With P parameters, T of
 * them learning (of an adapter only its own), c bytes of a value in products (2 in bf16, 4 in fp32), a layer and the
 * rest (embedding, last norm, head) counted in elements, and N tokens of a pack, a rank holds
 *
 *   weights      s P / R           in the state's type, s bytes a value: 4, or 2 with trainer.state_dtype=bf16
 *                                  (state.py), and the adapter's
 *   gradients    s T / R           summed in fp32 (`reduce_dtype` in model.py), and kept until the step
 *   moments      2 s T / R         m and v (`Piece` in state.py)
 *   critic       as weights, gradients and moments, for each further model that learns
 *   reference    s P / R + c rest  for each frozen model; FSDP2 keeps the rest gathered after a pass
 *   teacher      the same, of its own shape
 *                With trainer.cpu_offload all of the above but `c rest` lie in the machine's memory
 *   gathered     c (rest + 2 layer)  a layer exists twice while it is gathered: the buffer, and what is copied from it.
 *                Ranks that share matrices or experts (core/division.ts) gather their own part of a layer
 *   activations  of pass.ts: on a processor all that a pass keeps where there is room for it; on a card the least that
 *                it can do with, since layers are computed again before a card is full. N is the rank's share of the
 *                tokens; what ranks that share matrices keep is counted as if they did not
 *   head         28 V rows         the chunk's fp32 arrays in the backward pass of head.py; at most 4,096 rows, and
 *                1 GiB, on a card 4 GiB
 *   reduction    (c + 4) layer + c rest  gradients before they are divided; of experts they exist twice
 *   step         16 elements of the largest tensor / R  the norm of the gradient is summed in fp64 (training.py)
 *   loading      4 elements of the largest tensor  each rank reads a folder tensor by tensor (folder.py), in the
 *                machine's memory; the pages of its files are the kernel's
 *   snapshot     12 T              the copy of a state while its checkpoint is written, in shared memory
 *   libraries    for each rank of each model: Python with torch and transformers
 *
 * They are not all there at once: the plan has the moment at which they are most, of loading, the backward pass of the
 * head, that of the last layer, that of the embedding, and the step. A checkpoint is written while the run goes on.
 */
import type { Division } from '../../core/division.ts';
import { cardName, ownMemory } from '../../core/ports/engine-plans.ts';
import type { DevicePlan, EnginePlans, ProcessWanted } from '../../core/ports/engine-plans.ts';
import { elementsOf, parametersOf } from '../../models/decoder-shape.ts';
import type { DecoderShape, LayerShape } from '../../models/decoder-shape.ts';
import { adapterElements } from './adapter.ts';
import { refuseDivision } from './division.ts';
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
  async readModel(model, division) {
    const facts = await readModelFacts(model);
    await refuseStateLayers(model);
    if (division !== undefined) await refuseDivision(model, division);
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
  const { resident, offloaded } = stateOf(wanted, shape, teacher);
  const models = wanted.trained + wanted.frozen + (teacher === undefined ? 0 : 1);
  return {
    loading: { loading: 4 * Math.max(largestOf(shape), teacher === undefined ? 0 : largestOf(teacher)) },
    writing: { snapshot: wanted.trained * 12 * learningOf(wanted, shape) },
    always: {
      libraries: models * wanted.ranks * rankBytes + sharedBytes,
      ...(offloaded && times(wanted.ranks, resident)),
      // AdamW and the norm of the gradient compute where the state lies.
      ...(offloaded && wanted.trained > 0 && wanted.adapter === undefined && { step: 16 * largestOf(shape) }),
    },
  };
}

/** Weights, gradients and moments of all models: on the card of their rank, or in the machine's memory. */
function stateOf(wanted: ProcessWanted, shape: DecoderShape, teacher: DecoderShape | undefined) {
  const { trained, frozen, ranks } = wanted;
  const learning = learningOf(wanted, shape);
  const all = parametersOf(shape) + (wanted.adapter === undefined ? 0 : learning);
  const s = wanted.division?.state === 'bf16' ? 2 : 4;
  const weights = (s * all) / ranks;
  const [moments, gradients] = trained > 0 ? [(2 * s * learning) / ranks, (s * learning) / ranks] : [0, 0];
  const frozenBytes = (of: DecoderShape) => (s * parametersOf(of)) / ranks;
  const resident: Parts = {
    weights,
    moments,
    critic: Math.max(0, trained - 1) * (weights + moments + gradients),
    reference: frozen * frozenBytes(shape),
    teacher: teacher === undefined ? 0 : frozenBytes(teacher),
  };
  const offloaded = wanted.division?.offload === true && wanted.cardBytes !== undefined;
  return { resident: offloaded ? added(resident, { gradients }) : resident, gradients, offloaded };
}

function momentsOf(wanted: ProcessWanted, shape: DecoderShape, teacher: DecoderShape | undefined): Moments {
  const c = wanted.compute === 'bf16' ? 2 : 4;
  const state = stateOf(wanted, shape, teacher);
  const gathered: Parts = {
    reference: wanted.frozen * c * elementsOf(shape.rest),
    teacher: teacher === undefined ? 0 : c * elementsOf(teacher.rest),
  };
  const loading = state.offloaded ? gathered : added(state.resident, gathered);
  if (wanted.trained === 0) return { loading, computing: [loading] };
  const kept = state.offloaded ? loading : added(loading, { gradients: state.gradients });
  return { loading, computing: computingOf(wanted, shape, c).map((parts) => added(kept, parts)) };
}

/** What computing adds: in the head's backward pass, in the last layer's, in the embedding's, and in a step. */
function computingOf(wanted: ProcessWanted, shape: DecoderShape, c: number): Parts[] {
  const { ranks, division = {}, adapter, cardBytes } = wanted;
  const tokens = Math.ceil(wanted.tokens / (division.sequence ?? 1));
  const rest = elementsOf(shape.rest);
  const layer = Math.max(...shape.layers.map((one) => ownOf(one, division)));
  const onCards = cardBytes !== undefined;
  const activations =
    (onCards ? leastBytes : keptBytes)(shape, tokens, c) +
    scoreBytes(shape, wanted.tokens, onCards) / (division.sequence ?? 1);
  const ofHead = adapter === undefined ? c * shape.vocab * shape.hidden : 0;
  return [
    { gathered: c * rest, activations, head: headOf(shape.vocab, tokens, onCards), reduction: ofHead },
    {
      gathered: c * (rest + 2 * layer),
      activations,
      reduction: ofHead + (adapter === undefined ? gradientsOfLayer(shape, division, c) : 0),
    },
    { gathered: c * rest, reduction: adapter === undefined ? (2 * c + 4) * rest : 0 },
    { step: adapter === undefined && division.offload !== true ? (16 * largestOf(shape)) / ranks : 0 },
  ];
}

function headOf(vocab: number, tokens: number, onCards: boolean): number {
  const fitting = Math.floor((onCards ? headMost.card : headMost.processor) / (headBytes * vocab));
  return headBytes * vocab * Math.min(tokens, headRows, Math.max(1, fitting));
}

/** Each expert's gradient is one of all experts of the layer, added to that of the others. */
function gradientsOfLayer({ layers }: DecoderShape, division: Division, c: number): number {
  return Math.max(...layers.map((layer) => (c + 4) * ownOf(layer, division) + c * expertsOf(layer, division)));
}

/** Elements of a layer that a rank computes with. */
function ownOf(layer: LayerShape, division: Division): number {
  const shared = layer.parameters.filter(({ experts }) => experts === undefined);
  return elementsOf(shared) / (division.tensor ?? 1) + expertsOf(layer, division);
}

/** Experts are divided among ranks, or else their matrices. */
const expertsOf = ({ parameters }: LayerShape, { experts: among, tensor = 1 }: Division): number =>
  elementsOf(parameters.filter(({ experts }) => experts !== undefined)) / (among ?? tensor);

/** Elements of the largest tensor; the experts of a layer are one. */
export const largestOf = ({ layers, rest }: DecoderShape): number =>
  Math.max(...[...layers.flatMap(({ parameters }) => parameters), ...rest].map((one) => elementsOf([one])));

function learningOf({ adapter }: Pick<ProcessWanted, 'adapter'>, shape: DecoderShape): number {
  return adapter === undefined ? parametersOf(shape) : adapterElements(shape, adapter);
}
