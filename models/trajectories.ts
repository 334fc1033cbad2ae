/** The tensors of a rollout's trajectories: core/records/FORMAT.md, "Trajectory tensors". */
import type { PauseError } from '../core/errors.ts';
import { checkLengths, checkOffsets, misshapen } from './shape-check.ts';
import { decodeSafetensors, encodeSafetensors } from './safetensors.ts';
import type { DecodedSafetensors, MemoryTensor } from './safetensors.ts';

/** B samples of D draws, R response tokens. Samples lie draw by draw. */
export interface Trajectories {
  readonly weightsDigest: string;
  readonly samplesPerDraw: number;
  readonly draw_B: Int32Array;
  readonly row_B: Int32Array;
  readonly promptTokens: Int32Array;
  readonly promptOffsets_D1: Int32Array;
  readonly responseTokens_R: Int32Array;
  readonly responseOffsets_B1: Int32Array;
  readonly logProbs_R: Float32Array;
  readonly samplingLogProbs_R: Float32Array;
  /** 1 stop token or string, 2 length, 3 poison: it has no tokens, since it crashed every worker that sampled it. */
  readonly stopReason_B: Uint8Array;
}

export const stopReasons = { stop: 1, length: 2, poison: 3 } as const;

/**
 * Parts of one job, joined as if it had been done in one piece. They come in order of draws, and of samples within a
 * draw; `samplesPerDraw` is that of the whole.
 */
export function joinTrajectories(parts: readonly Trajectories[], samplesPerDraw: number): Trajectories {
  // A part that holds only poison samples has no prompts.
  const prompts = new Map<number, Int32Array>();
  for (const { draw, tokens } of parts.flatMap(promptsOf))
    if ((prompts.get(draw)?.length ?? 0) === 0) prompts.set(draw, tokens);
  const lengths = parts.flatMap(({ responseOffsets_B1: offsets }) =>
    [...offsets.subarray(1)].map((end, b) => end - (offsets[b] ?? 0)),
  );
  return {
    weightsDigest: parts[0]?.weightsDigest ?? '',
    samplesPerDraw,
    draw_B: Int32Array.from(parts.flatMap((part) => [...part.draw_B])),
    row_B: Int32Array.from(parts.flatMap((part) => [...part.row_B])),
    promptTokens: Int32Array.from([...prompts.values()].flatMap((tokens) => [...tokens])),
    promptOffsets_D1: offsetsOf([...prompts.values()].map((tokens) => tokens.length)),
    responseTokens_R: Int32Array.from(parts.flatMap((part) => [...part.responseTokens_R])),
    responseOffsets_B1: offsetsOf(lengths),
    logProbs_R: Float32Array.from(parts.flatMap((part) => [...part.logProbs_R])),
    samplingLogProbs_R: Float32Array.from(parts.flatMap((part) => [...part.samplingLogProbs_R])),
    stopReason_B: Uint8Array.from(parts.flatMap((part) => [...part.stopReason_B])),
  };
}

function promptsOf({ promptTokens, promptOffsets_D1: offsets, draw_B, samplesPerDraw }: Trajectories) {
  return Array.from({ length: offsets.length - 1 }, (_, d) => ({
    draw: draw_B[d * samplesPerDraw] ?? -1,
    tokens: promptTokens.subarray(offsets[d], offsets[d + 1]),
  }));
}

export function offsetsOf(lengths: readonly number[]): Int32Array {
  const offsets = new Int32Array(lengths.length + 1);
  lengths.forEach((length, i) => (offsets[i + 1] = (offsets[i] ?? 0) + length));
  return offsets;
}

export function encodeTrajectories(t: Trajectories): Uint8Array {
  return encodeSafetensors(
    {
      draw: i32(t.draw_B),
      row: i32(t.row_B),
      prompt_tokens: i32(t.promptTokens),
      prompt_offsets: i32(t.promptOffsets_D1),
      response_tokens: i32(t.responseTokens_R),
      response_offsets: i32(t.responseOffsets_B1),
      log_probs: f32(t.logProbs_R),
      sampling_log_probs: f32(t.samplingLogProbs_R),
      stop_reason: u8(t.stopReason_B),
    },
    { weights: t.weightsDigest, samples_per_draw: String(t.samplesPerDraw) },
  );
}

export function decodeTrajectories(bytes: Uint8Array, where: string): Trajectories {
  const file = decodeSafetensors(bytes, where);
  const t: Trajectories = {
    weightsDigest: file.metadata['weights'] ?? '',
    samplesPerDraw: Number(file.metadata['samples_per_draw']),
    draw_B: i32Of(file, 'draw', where),
    row_B: i32Of(file, 'row', where),
    promptTokens: i32Of(file, 'prompt_tokens', where),
    promptOffsets_D1: i32Of(file, 'prompt_offsets', where),
    responseTokens_R: i32Of(file, 'response_tokens', where),
    responseOffsets_B1: i32Of(file, 'response_offsets', where),
    logProbs_R: f32Of(file, 'log_probs', where),
    samplingLogProbs_R: f32Of(file, 'sampling_log_probs', where),
    stopReason_B: u8Of(file, 'stop_reason', where),
  };
  checkShapes(t, where);
  return t;
}

function checkShapes(t: Trajectories, where: string): void {
  const samples = t.draw_B.length;
  if (!Number.isInteger(t.samplesPerDraw) || t.samplesPerDraw < 1)
    throw misshapen(where, `samples_per_draw: expected a number of samples, found ${t.samplesPerDraw}`);
  checkLengths(where, samples, { row: t.row_B, stop_reason: t.stopReason_B });
  checkOffsets(where, 'prompt_offsets', t.promptOffsets_D1, samples / t.samplesPerDraw, t.promptTokens.length);
  checkOffsets(where, 'response_offsets', t.responseOffsets_B1, samples, t.responseTokens_R.length);
  checkLengths(where, t.responseTokens_R.length, { log_probs: t.logProbs_R, sampling_log_probs: t.samplingLogProbs_R });
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
