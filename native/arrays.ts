import type { AdamW, StepResult } from '../core/ports/policy.ts';
import { native } from './binding.ts';
import { check } from '../core/ports/check-batch.ts';

/** Little-endian bf16 bytes to fp32, exactly. */
export function convertBf16(src: Uint8Array, dst: Float32Array): void {
  check(src.byteLength === 2 * dst.length, `bf16: ${src.byteLength} bytes cannot fill ${dst.length} values`);
  native().convertBf16(src, dst);
}

/** fp32 to bf16 bits, rounded to nearest even. */
export function roundBf16(src: Float32Array): Uint16Array {
  return native().roundBf16(src);
}

/** Little-endian fp16 bytes to fp32, exactly. */
export function convertFp16(src: Uint8Array, dst: Float32Array): void {
  check(src.byteLength === 2 * dst.length, `fp16: ${src.byteLength} bytes cannot fill ${dst.length} values`);
  native().convertFp16(src, dst);
}

/** fp32 to fp16 bits, rounded to nearest even; ±Infinity beyond the range. */
export function roundFp16(src: Float32Array): Uint16Array {
  return native().roundFp16(src);
}

/**
 * The bytes of a file, mapped instead of read: pages are loaded when they are touched. Writes to the array never reach
 * the file.
 */
export function mapFile(path: string): Uint8Array {
  return native().mapFile(path);
}

/**
 * One step of the engine's AdamW over plain arrays, in place; it sets grads to 0. `step` is t, from 1. With `vMax`:
 * AMSGrad.
 */
export function adamw(
  params: Float32Array,
  grads: Float32Array,
  m: Float32Array,
  v: Float32Array,
  settings: AdamW,
  step: number,
  vMax?: Float32Array,
): StepResult {
  check(
    [grads, m, v, vMax ?? v].every((a) => a.length === params.length),
    'adamw: params, grads, m and v must be of equal length',
  );
  check(Number.isInteger(step) && step >= 1, `adamw: step counts from 1, it is ${step}`);
  const { lr, beta1, beta2, eps, weightDecay, maxGradNorm } = settings;
  const [gradNorm, taken] = native().adamw(
    params,
    grads,
    m,
    v,
    lr,
    beta1,
    beta2,
    eps,
    weightDecay,
    maxGradNorm,
    step,
    vMax,
  );
  return { gradNorm, taken };
}

/**
 * Scales gradients in place by min(1, maxNorm / (norm + 1e-6)), as torch does (0 or NaN when the norm is not finite).
 * Returns the norm before scaling.
 */
export function clipGradients(grads: Float32Array, maxNorm: number): number {
  return native().clipGradients(grads, maxNorm);
}
