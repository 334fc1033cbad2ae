/** The critic's values of a batch, on their way to the job that makes the batch: core/records/FORMAT.md, "Values". */
import type { BatchOrigin } from './batch-tensors.ts';
import { decodeSafetensors, encodeSafetensors } from './safetensors.ts';
import { checkLengths } from './shape-check.ts';
import { f32, f32Of } from './trajectories.ts';

/** `origin`: the batch that they belong to; it is in the bytes, so that no two batches share an object. */
export function encodeValues(values_T: Float32Array, { iteration, parentState }: BatchOrigin): Uint8Array {
  return encodeSafetensors({ values: f32(values_T) }, { iteration: String(iteration), parent_state: parentState });
}

/** Throws PauseError `DamagedRecord` unless there is a value for each of `tokens`. */
export function decodeValues(bytes: Uint8Array, where: string, tokens: number): Float32Array {
  const values_T = f32Of(decodeSafetensors(bytes, where), 'values', where);
  checkLengths(where, tokens, { values: values_T });
  return values_T;
}
