/** Widening and rounding between stored number types and float32. All of these processors are little-endian. */
import { pow } from '../../core/math/pow.ts';

/** bfloat16 bits to float32: exact. */
export function widenBf16(source: Uint16Array, target: Float32Array): void {
  const bits = new Uint32Array(target.buffer, target.byteOffset, target.length);
  for (let i = 0; i < bits.length; i++) bits[i] = (source[i] as number) << 16;
}

/** float32 to bfloat16 bits, to nearest, ties to even; a NaN stays one. */
export function roundToBf16(source: Float32Array, target: Uint16Array): void {
  const bits = new Uint32Array(source.buffer, source.byteOffset, source.length);
  for (let i = 0; i < bits.length; i++) {
    const x = bits[i] as number;
    target[i] = (x & 0x7fffffff) > 0x7f800000 ? (x >>> 16) | 0x40 : (x + 0x7fff + ((x >>> 16) & 1)) >>> 16;
  }
}

/** IEEE half bits to float32: exact. */
export function widenF16(source: Uint16Array, target: Float32Array): void {
  for (let i = 0; i < target.length; i++) target[i] = halfToNumber(source[i] as number);
}

function halfToNumber(bits: number): number {
  const sign = (bits & 0x8000) === 0 ? 1 : -1;
  const exponent = (bits >>> 10) & 0x1f;
  const fraction = bits & 0x3ff;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  if (exponent === 31) return fraction === 0 ? sign * Infinity : NaN;
  return sign * (1 + fraction / 1024) * pow(2, exponent - 15);
}
