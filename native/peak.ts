/** The machine's own peak, as loops in registers and caches reach it (src/peaks.h). Only the bench asks. */
import type { ComputeType } from '../core/parameters.ts';
import { native } from './binding.ts';
import { engineInfo } from './engine-info.ts';
import { check } from '../core/ports/check-batch.ts';

/** The addon's functions of src/peaks_binding.cpp. */
interface PeakFunctions {
  peakClass(bf16: boolean): string;
  peakProductSeconds(m: number, n: number, k: number, bf16: boolean, threads: number, repeats: number): number;
  peakReadSeconds(ones: Float32Array, threads: number): number;
}

const addon = native<PeakFunctions>;

/** Classes of instructions that products can use, the slowest first. */
export const instructionClasses = ['avx2', 'avx512', 'avx512_bf16', 'amx'] as const;
export type InstructionClass = (typeof instructionClasses)[number];

/** The class that the engine's products use with this compute type, with PETREL_ISA as it is. */
export function peakClass(compute: ComputeType): InstructionClass {
  checkCompute(compute);
  return addon().peakClass(compute === 'bf16') as InstructionClass;
}

/** A product of [m, k] with [k, n], computed `repeats` times. */
export interface PeakProduct {
  readonly m: number;
  readonly n: number;
  readonly k: number;
  readonly compute: ComputeType;
  readonly threads: number;
  readonly repeats: number;
}

/**
 * Seconds of `repeats` products, each done by one thread from operands in its first-level cache, with register tiles
 * or AMX tiles. Throws InvalidInputError for sizes below 1, or for bf16 where it is not possible.
 */
export function peakProductSeconds({ m, n, k, compute, threads, repeats }: PeakProduct): number {
  checkCompute(compute);
  for (const [name, value] of Object.entries({ m, n, k, repeats })) checkWhole(name, value, 2 ** 31);
  checkWhole('threads', threads, 1024);
  return addon().peakProductSeconds(m, n, k, compute === 'bf16', threads, repeats);
}

/** Floats that a thread reads at a time. */
const readItem = 65_536;

/** Seconds in which `threads` threads read an array of ones, whose length is a multiple of 65,536. */
export function readSeconds(ones: Float32Array, threads: number): number {
  check(
    ones.length > 0 && ones.length % readItem === 0,
    `expected a multiple of ${readItem} values to read, there are ${ones.length}`,
  );
  checkWhole('threads', threads, 1024);
  return addon().peakReadSeconds(ones, threads);
}

function checkCompute(compute: ComputeType): void {
  check(compute === 'fp32' || engineInfo().bf16, 'products in bf16 need a processor with AVX512_BF16');
}

function checkWhole(name: string, value: number, max: number): void {
  check(
    Number.isInteger(value) && value >= 1 && value <= max,
    `${name} must be an integer from 1 to ${max}, it is ${value}`,
  );
}
