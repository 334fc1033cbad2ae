/**
 * Memory of the native engine, known before it allocates. With P parameters, L of them in matrices:
 *
 *   weights    4 P          fp32 masters
 *   copies     2 L or 4 L   what products read, in bf16 or fp32
 *   gradients  4 P          of a trainable model
 *   moments    8 P          of a trainable model
 *   cache      keys and values of every sample that decodes at once, in pages of 16 positions
 */
import { isTied } from './spec.ts';
import type { DecoderSpec } from './spec.ts';
import type { PolicyOptions } from '../../core/ports/engines.ts';
import type { ComputeType } from '../../core/parameters.ts';
import type { SamplerRoom } from '../../core/ports/sampler.ts';

/** Bytes by what they hold. */
export interface ModelMemory {
  readonly weights: number;
  readonly copies: number;
  readonly gradients: number;
  readonly moments: number;
}

/** A cache gets at most this share of the machine: activations and the copy of a checkpoint need room too. */
export const cacheShare = 1 / 4;

/** Positions of a sequence that share a page. */
const pagePositions = 16;

export function modelMemory(
  spec: DecoderSpec,
  { compute, trainable }: Pick<PolicyOptions, 'compute' | 'trainable'>,
): ModelMemory {
  const weights = 4 * parameterCount(spec);
  return {
    weights,
    copies: matrixElements(spec) * bytesOf(compute),
    gradients: trainable ? weights : 0,
    moments: trainable ? 2 * weights : 0,
  };
}

/** Elements of all parameters. */
export function parameterCount(spec: DecoderSpec): number {
  return sum(spec.tensors.map(({ shape }) => product(shape)));
}

/** Bytes of one page of keys and values in all layers. */
export function pageBytes({ layers }: DecoderSpec, compute: ComputeType): number {
  return sum(layers.map(({ mixer }) => mixer.kvHeads * 2 * pagePositions * mixer.headDim)) * bytesOf(compute);
}

/** Pages of one sequence, one more than a full one: a prompt's last page exists twice while its samples start. */
export function pagesOfSequence({ maxModelLen }: Pick<SamplerRoom, 'maxModelLen'>): number {
  return Math.ceil(maxModelLen / pagePositions) + 1;
}

/** Bytes of the cache with which no sample waits for another one to end. */
export function cacheBytes(spec: DecoderSpec, compute: ComputeType, room: SamplerRoom): number {
  return room.maxSeqs * pagesOfSequence(room) * pageBytes(spec, compute);
}

const bytesOf = (compute: ComputeType): number => (compute === 'bf16' ? 2 : 4);

/** A tied embedding is a matrix of the head too. */
function matrixElements(spec: DecoderSpec): number {
  const matrices = spec.tensors.filter(({ name, shape }) => shape.length === 2 && !name.includes('embed'));
  return sum(matrices.map(({ shape }) => product(shape))) + (isTied(spec) ? spec.vocab * spec.hidden : 0);
}

const product = (shape: readonly number[]): number => shape.reduce((all, size) => all * size, 1);
const sum = (values: readonly number[]): number => values.reduce((all, value) => all + value, 0);
