import { at } from '../core/at.ts';
import { InvalidInputError } from '../core/errors.ts';
import { modelLimits } from '../core/model-limits.ts';
import type { DecoderSpec, GqaSpec, NormSpec } from './model/spec.ts';
import { outputsOfHead } from '../core/ports/policy.ts';
import type { EngineOptions, ForwardOptions, OutputName, PackedBatch } from '../core/ports/policy.ts';

/** Throws InvalidInputError with `message` unless the condition holds. */
export function check(condition: boolean, message: string): asserts condition {
  if (!condition) throw new InvalidInputError(message);
}

/** Throws InvalidInputError for a spec that this engine cannot run. The addon checks every tensor besides. */
export function checkSpec(spec: DecoderSpec): void {
  checkSize('layers', spec.layers.length, modelLimits.layers);
  checkSize('hidden', spec.hidden, modelLimits.hidden);
  checkSize('vocab', spec.vocab, modelLimits.vocab);
  checkSize('maxPositions', spec.maxPositions, modelLimits.positions);
  const norms = spec.layers.flatMap(({ norms }) => Object.values(norms) as NormSpec[]);
  for (const norm of [...norms, spec.finalNorm]) checkNorm(norm);
  spec.layers.forEach(({ mixer, ffn }) => {
    checkMixer(mixer);
    checkSize('ffn.width', ffn.width, modelLimits.ffn);
  });
}

function checkMixer(mixer: GqaSpec): void {
  const { heads, kvHeads, headDim, rope, window, scale, softcap } = mixer;
  checkSize('heads', heads, modelLimits.heads);
  checkSize('kvHeads', kvHeads, modelLimits.kvHeads);
  checkSize('headDim', headDim, modelLimits.headDim);
  checkSize('heads * headDim', heads * headDim, modelLimits.queryWidth);
  check(heads % kvHeads === 0, `decoder: ${heads} heads cannot share ${kvHeads} key heads evenly`);
  check(headDim % 2 === 0, `decoder: headDim must be even for rope, it is ${headDim}`);
  check(
    rope.length >= 1 && rope.length <= headDim / 2 && rope.every(Number.isFinite),
    `decoder: rope must hold 1 to headDim / 2 = ${headDim / 2} numbers, it holds ${rope.length}`,
  );
  check(Number.isInteger(window) && window >= 0, `decoder: window must be a non-negative integer, it is ${window}`);
  check(Number.isFinite(scale) && scale > 0, `decoder: the scale of scores must be above 0, it is ${scale}`);
  check(Number.isFinite(softcap) && softcap >= 0, `decoder: softcap must be ≥ 0, it is ${softcap}`);
}

function checkNorm({ weight, eps, offset }: NormSpec): void {
  check(Number.isFinite(eps) && eps >= 0, `decoder: eps of ${weight} must be ≥ 0, it is ${eps}`);
  check(Number.isFinite(offset), `decoder: offset of ${weight} must be a number, it is ${offset}`);
}

function checkSize(name: string, value: number, max: number): void {
  check(
    Number.isInteger(value) && value > 0 && value <= max,
    `decoder: ${name} must be an integer from 1 to ${max}, it is ${value}`,
  );
}

/** Throws InvalidInputError for options that no engine supports, or that this processor does not support. */
export function checkOptions(options: EngineOptions, bf16: boolean): void {
  const { compute, threads } = options;
  check(compute === 'fp32' || compute === 'bf16', `compute must be fp32 or bf16, it is ${String(compute)}`);
  check(compute === 'fp32' || bf16, 'compute bf16 needs a processor with AVX512_BF16; use fp32 on this one');
  check(Number.isInteger(threads) && threads >= 1 && threads <= 1024, `threads must be 1 … 1024, it is ${threads}`);
}

/** Throws InvalidInputError when the arrays of a packed batch do not fit together, or when the model lacks a token. */
export function checkBatch(batch: PackedBatch, vocab: number): void {
  const { tokens_N, cuSeqlens, positions_P, targets_P } = batch;
  for (const [name, array] of Object.entries({ tokens_N, cuSeqlens, positions_P, targets_P })) {
    const isAbsentTargets = name === 'targets_P' && array === undefined;
    check(isAbsentTargets || array instanceof Int32Array, `batch: ${name} must be an Int32Array`);
  }
  const last = cuSeqlens[cuSeqlens.length - 1];
  check(
    cuSeqlens.length >= 2 && cuSeqlens[0] === 0 && last === tokens_N.length,
    `batch: cuSeqlens must run from 0 to ${tokens_N.length}`,
  );
  check(ascends(cuSeqlens), 'batch: every sequence needs at least one token (cuSeqlens must ascend)');
  check(
    targets_P === undefined || positions_P.length === targets_P.length,
    `batch: ${positions_P.length} positions but ${targets_P?.length} targets`,
  );
  check(within(positions_P, tokens_N.length), `batch: positions_P must lie in 0 … ${tokens_N.length - 1}`);
  checkParents(batch);
  check(within(tokens_N, vocab), `batch: token ids must lie in 0 … ${vocab - 1}`);
  check(targets_P === undefined || within(targets_P, vocab), `batch: target ids must lie in 0 … ${vocab - 1}`);
}

function checkParents({ cuSeqlens, parents_S }: PackedBatch): void {
  if (parents_S === undefined) return;
  check(parents_S instanceof Int32Array, 'batch: parents_S must be an Int32Array');
  const sequences = cuSeqlens.length - 1;
  check(parents_S.length === sequences, `batch: ${sequences} sequences but ${parents_S.length} parents`);
  check(areParents(parents_S), 'batch: parents_S must hold -1 or an earlier sequence without a parent');
}

export function checkForward(spec: DecoderSpec, batch: PackedBatch, options: ForwardOptions<OutputName>): void {
  check(
    Number.isFinite(options.temperature) && options.temperature > 0,
    `temperature of scoring must be above 0, it is ${options.temperature}`,
  );
  const given = outputsOfHead[spec.head.kind];
  for (const name of options.wants) {
    check(given.includes(name), `a model with a head of ${spec.head.kind} gives ${given.join(', ')}, not ${name}`);
  }
  const wantsTop = options.wants.some((name) => name === 'topTokens' || name === 'topLogProbs');
  const { topK } = options;
  check(
    !wantsTop || (topK !== undefined && Number.isInteger(topK) && topK >= 1 && topK <= spec.vocab),
    `topTokens and topLogProbs need topK, an integer from 1 to ${spec.vocab}, it is ${topK}`,
  );
  check(!options.wants.includes('logProbs') || batch.targets_P !== undefined, 'logProbs need targets_P');
}

function ascends(array: Int32Array): boolean {
  for (let i = 1; i < array.length; i++) if (at(array, i) <= at(array, i - 1)) return false;
  return true;
}

function areParents(parents_S: Int32Array): boolean {
  return parents_S.every((parent, s) => parent === -1 || (parent >= 0 && parent < s && parents_S[parent] === -1));
}

function within(array: Int32Array, end: number): boolean {
  for (const value of array) if (value < 0 || value >= end) return false;
  return true;
}
