/** The tensors of a rollout's trajectories: core/records/FORMAT.md, "Trajectory tensors". */
import { at } from '../core/at.ts';
import type { PauseError } from '../core/errors.ts';
import { checkLengths, checkOffsets, misshapen } from './shape-check.ts';
import { decodeSafetensors, encodeSafetensors } from './safetensors.ts';
import type { DecodedSafetensors, MemoryTensor } from './safetensors.ts';

/** The samples of some draws, draw by draw. Shapes: the legend in core/rl/ragged.ts; G counts the draws. */
export interface Trajectories {
  readonly weightsDigest: string;
  readonly samplesPerDraw: number;
  readonly draw_S: Int32Array;
  readonly row_S: Int32Array;
  readonly promptTokens: Int32Array;
  readonly promptOffsets_G1: Int32Array;
  readonly responseTokens_T: Int32Array;
  readonly responseOffsets_S1: Int32Array;
  readonly logProbs_T: Float32Array;
  readonly samplingLogProbs_T: Float32Array;
  /** 1 stop token or string, 2 length, 3 poison: it has no tokens, since it crashed every worker that sampled it. */
  readonly stopReason_S: Uint8Array;
}

export const stopReasons = { stop: 1, length: 2, poison: 3 } as const;

/**
 * Joins the parts of one job to the same result as the whole job. The parts are in order of draws, and of samples
 * within a draw; `samplesPerDraw` is the whole job's.
 */
export function joinTrajectories(parts: readonly Trajectories[], samplesPerDraw: number): Trajectories {
  // A part that holds only poison samples has no prompts.
  const prompts = new Map<number, Int32Array>();
  for (const { draw, tokens } of parts.flatMap(promptsOf))
    if ((prompts.get(draw)?.length ?? 0) === 0) prompts.set(draw, tokens);
  const lengths = parts.flatMap(({ responseOffsets_S1: offsets }) =>
    [...offsets.subarray(1)].map((end, b) => end - at(offsets, b)),
  );
  return {
    weightsDigest: at(parts, 0).weightsDigest,
    samplesPerDraw,
    draw_S: Int32Array.from(parts.flatMap((part) => [...part.draw_S])),
    row_S: Int32Array.from(parts.flatMap((part) => [...part.row_S])),
    promptTokens: Int32Array.from([...prompts.values()].flatMap((tokens) => [...tokens])),
    promptOffsets_G1: offsetsOf([...prompts.values()].map((tokens) => tokens.length)),
    responseTokens_T: Int32Array.from(parts.flatMap((part) => [...part.responseTokens_T])),
    responseOffsets_S1: offsetsOf(lengths),
    logProbs_T: Float32Array.from(parts.flatMap((part) => [...part.logProbs_T])),
    samplingLogProbs_T: Float32Array.from(parts.flatMap((part) => [...part.samplingLogProbs_T])),
    stopReason_S: Uint8Array.from(parts.flatMap((part) => [...part.stopReason_S])),
  };
}

function promptsOf({ promptTokens, promptOffsets_G1: offsets, draw_S, samplesPerDraw }: Trajectories) {
  return Array.from({ length: offsets.length - 1 }, (_, d) => ({
    draw: at(draw_S, d * samplesPerDraw),
    tokens: promptTokens.subarray(offsets[d], offsets[d + 1]),
  }));
}

export function offsetsOf(lengths: readonly number[]): Int32Array {
  const offsets = new Int32Array(lengths.length + 1);
  lengths.forEach((length, i) => (offsets[i + 1] = at(offsets, i) + length));
  return offsets;
}

export function encodeTrajectories(t: Trajectories): Uint8Array {
  return encodeSafetensors(
    {
      draw: i32(t.draw_S),
      row: i32(t.row_S),
      prompt_tokens: i32(t.promptTokens),
      prompt_offsets: i32(t.promptOffsets_G1),
      response_tokens: i32(t.responseTokens_T),
      response_offsets: i32(t.responseOffsets_S1),
      log_probs: f32(t.logProbs_T),
      sampling_log_probs: f32(t.samplingLogProbs_T),
      stop_reason: u8(t.stopReason_S),
    },
    { weights: t.weightsDigest, samples_per_draw: String(t.samplesPerDraw) },
  );
}

export function decodeTrajectories(bytes: Uint8Array, where: string): Trajectories {
  const file = decodeSafetensors(bytes, where);
  const t: Trajectories = {
    weightsDigest: file.metadata['weights'] ?? '',
    samplesPerDraw: Number(file.metadata['samples_per_draw']),
    draw_S: i32Of(file, 'draw', where),
    row_S: i32Of(file, 'row', where),
    promptTokens: i32Of(file, 'prompt_tokens', where),
    promptOffsets_G1: i32Of(file, 'prompt_offsets', where),
    responseTokens_T: i32Of(file, 'response_tokens', where),
    responseOffsets_S1: i32Of(file, 'response_offsets', where),
    logProbs_T: f32Of(file, 'log_probs', where),
    samplingLogProbs_T: f32Of(file, 'sampling_log_probs', where),
    stopReason_S: u8Of(file, 'stop_reason', where),
  };
  checkShapes(t, where);
  return t;
}

function checkShapes(t: Trajectories, where: string): void {
  const samples = t.draw_S.length;
  if (!Number.isInteger(t.samplesPerDraw) || t.samplesPerDraw < 1)
    throw misshapen(where, `samples_per_draw: expected a number of samples, found ${t.samplesPerDraw}`);
  checkLengths(where, samples, { row: t.row_S, stop_reason: t.stopReason_S });
  checkOffsets(where, 'prompt_offsets', t.promptOffsets_G1, samples / t.samplesPerDraw, t.promptTokens.length);
  checkOffsets(where, 'response_offsets', t.responseOffsets_S1, samples, t.responseTokens_T.length);
  checkLengths(where, t.responseTokens_T.length, { log_probs: t.logProbs_T, sampling_log_probs: t.samplingLogProbs_T });
}

export function i32(data: Int32Array): MemoryTensor {
  return { dtype: 'I32', data, shape: [data.length] };
}
export function f32(data: Float32Array): MemoryTensor {
  return { dtype: 'F32', data, shape: [data.length] };
}
export function u8(data: Uint8Array): MemoryTensor {
  return { dtype: 'U8', data, shape: [data.length] };
}

export function i32Of(file: DecodedSafetensors, name: string, where: string): Int32Array {
  const tensor = file.tensors.get(name);
  if (tensor?.dtype !== 'I32') throw damaged(where, name, 'I32', tensor?.dtype);
  return tensor.data;
}
export function f32Of(file: DecodedSafetensors, name: string, where: string): Float32Array {
  const tensor = file.tensors.get(name);
  if (tensor?.dtype !== 'F32') throw damaged(where, name, 'F32', tensor?.dtype);
  return tensor.data;
}
export function u8Of(file: DecodedSafetensors, name: string, where: string): Uint8Array {
  const tensor = file.tensors.get(name);
  if (tensor?.dtype !== 'U8') throw damaged(where, name, 'U8', tensor?.dtype);
  return tensor.data;
}

function damaged(where: string, name: string, expected: string, found: string | undefined): PauseError {
  return misshapen(where, `tensor ${name}: expected ${expected}, found ${found ?? 'none'}`);
}
