import { at } from '../core/at.ts';
import { InvalidInputError } from '../core/errors.ts';
import { modelLimits } from '../core/model-limits.ts';
import type { DecoderConfig, EngineOptions, ForwardOptions, PackedBatch } from '../core/ports.ts';

/** Throws InvalidInputError with `message` unless the condition holds. */
export function check(condition: boolean, message: string): asserts condition {
  if (!condition) throw new InvalidInputError(message);
}

/** Throws InvalidInputError for a config that this engine cannot run as a decoder. */
export function checkConfig(config: DecoderConfig): void {
  for (const key of ['layers', 'hidden', 'heads', 'kvHeads', 'headDim', 'ffn', 'vocab'] as const)
    checkSize(key, config[key], modelLimits[key]);
  checkSize('maxPositions', config.maxPositions, modelLimits.positions);
  checkSize('heads * headDim', config.heads * config.headDim, modelLimits.queryWidth);
  check(
    config.heads % config.kvHeads === 0,
    `decoder config: ${config.heads} heads cannot share ${config.kvHeads} key heads evenly`,
  );
  check(config.headDim % 2 === 0, `decoder config: headDim must be even for rope, it is ${config.headDim}`);
  check(
    config.ropeInvFreq.length === config.headDim / 2 && config.ropeInvFreq.every(Number.isFinite),
    `decoder config: ropeInvFreq must hold headDim / 2 = ${config.headDim / 2} numbers, it holds ${config.ropeInvFreq.length}`,
  );
  check(
    config.windows.length === config.layers && config.windows.every((w) => Number.isInteger(w) && w >= 0),
    `decoder config: windows must hold one non-negative integer per layer (${config.layers})`,
  );
  check(
    Number.isFinite(config.normEps) && config.normEps >= 0,
    `decoder config: normEps must be ≥ 0, it is ${config.normEps}`,
  );
}

function checkSize(name: string, value: number, max: number): void {
  check(
    Number.isInteger(value) && value > 0 && value <= max,
    `decoder config: ${name} must be an integer from 1 to ${max}, it is ${value}`,
  );
}

/** Throws InvalidInputError for options that no engine supports, or that this processor does not support. */
export function checkOptions(options: EngineOptions, bf16: boolean): void {
  const { compute, deterministic, threads } = options;
  check(compute === 'fp32' || compute === 'bf16', `compute must be fp32 or bf16, it is ${String(compute)}`);
  check(
    !(deterministic && compute === 'bf16'),
    'deterministic: true needs compute fp32; bf16 has no fixed order of sums',
  );
  check(compute === 'fp32' || bf16, 'compute bf16 needs a processor with AVX512_BF16; use fp32 on this one');
  check(Number.isInteger(threads) && threads >= 1 && threads <= 1024, `threads must be 1 … 1024, it is ${threads}`);
}

/** Throws InvalidInputError when the arrays of a packed batch do not fit together, or when the model lacks a token. */
export function checkBatch(batch: PackedBatch, vocab: number): void {
  const { tokens_N, cuSeqlens, positions_P, targets_P } = batch;
  for (const [name, array] of Object.entries({ tokens_N, cuSeqlens, positions_P, targets_P })) {
    check(array instanceof Int32Array, `batch: ${name} must be an Int32Array`);
  }
  const last = cuSeqlens[cuSeqlens.length - 1];
  check(
    cuSeqlens.length >= 2 && cuSeqlens[0] === 0 && last === tokens_N.length,
    `batch: cuSeqlens must run from 0 to ${tokens_N.length}`,
  );
  check(ascends(cuSeqlens), 'batch: every sequence needs at least one token (cuSeqlens must ascend)');
  check(
    positions_P.length === targets_P.length,
    `batch: ${positions_P.length} positions but ${targets_P.length} targets`,
  );
  check(ascends(positions_P), 'batch: positions_P must ascend without repeats');
  check(within(positions_P, tokens_N.length), `batch: positions_P must lie in 0 … ${tokens_N.length - 1}`);
  check(within(tokens_N, vocab), `batch: token ids must lie in 0 … ${vocab - 1}`);
  check(within(targets_P, vocab), `batch: target ids must lie in 0 … ${vocab - 1}`);
}

export function checkForward(options: ForwardOptions): void {
  check(
    Number.isFinite(options.temperature) && options.temperature > 0,
    `temperature of scoring must be above 0, it is ${options.temperature}`,
  );
}

function ascends(array: Int32Array): boolean {
  for (let i = 1; i < array.length; i++) if (at(array, i) <= at(array, i - 1)) return false;
  return true;
}

function within(array: Int32Array, end: number): boolean {
  for (const value of array) if (value < 0 || value >= end) return false;
  return true;
}
