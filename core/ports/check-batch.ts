/** What every engine refuses before it computes. Whatever arrays come, no engine reads outside them. */
import { at } from '../at.ts';
import { InvalidInputError } from '../errors.ts';
import type { ForwardOptions, HeadKind, OutputName, PackedBatch } from './policy.ts';

/** Throws InvalidInputError with `message` unless the condition holds. */
export function check(condition: boolean, message: string): asserts condition {
  if (!condition) throw new InvalidInputError(message);
}

/** What the checks know of a model. */
export interface CheckedModel {
  readonly head: HeadKind;
  readonly vocab: number;
  readonly outputs: readonly OutputName[];
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

/** Throws InvalidInputError for outputs that the model does not give, or that need more than the batch has. */
export function checkForward(model: CheckedModel, batch: PackedBatch, options: ForwardOptions<OutputName>): void {
  check(
    Number.isFinite(options.temperature) && options.temperature > 0,
    `temperature of scoring must be above 0, it is ${options.temperature}`,
  );
  const { head, outputs } = model;
  for (const name of options.wants) {
    check(outputs.includes(name), `a model with a head of ${head} gives ${outputs.join(', ')}, not ${name}`);
  }
  const wantsTop = options.wants.some((name) => name === 'topTokens' || name === 'topLogProbs');
  const { topK } = options;
  check(
    !wantsTop || (topK !== undefined && Number.isInteger(topK) && topK >= 1 && topK <= model.vocab),
    `topTokens and topLogProbs need topK, an integer from 1 to ${model.vocab}, it is ${topK}`,
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
