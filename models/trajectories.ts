/** The tensors of a rollout's trajectories: core/records/FORMAT.md, "Trajectory tensors". */
import { at } from '../core/at.ts';
import type { PauseError } from '../core/errors.ts';
import { checkLengths, checkOffsets, misshapen } from './shape-check.ts';
import { decodeSafetensors, encodeSafetensors } from './safetensors.ts';
import type { DecodedSafetensors, MemoryTensor } from './safetensors.ts';

/** The maker of a segment of a response: the policy, or what it talks to (a tool, a user, a simulator). */
export const segmentKinds = { policy: 0, environment: 1 } as const;

/**
 * The samples of some draws, draw by draw. Shapes: the legend in core/rl/ragged.ts; G counts the draws, K the segments
 * of all samples.
 */
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
  /** 1: the policy made this token, so it is trained on. */
  readonly mask_T: Uint8Array;
  /** Version of the policy that made each token; −1 for a token that it did not make, or when no record says. */
  readonly version_T: Int32Array;
  /** Ranges of a sample's segments in the arrays [K]; a segment ends before response token `segmentEnds_K`. */
  readonly segmentOffsets_S1: Int32Array;
  readonly segmentEnds_K: Int32Array;
  readonly segmentKinds_K: Uint8Array;
  /** Number of the session within its draw, and of the output within its session. */
  readonly session_S: Int32Array;
  readonly output_S: Int32Array;
  /** Free columns by name, one value per sample. */
  readonly columns: Readonly<Record<string, Float32Array>>;
  /** 1 stop token or string, 2 length, 3 poison: it has no tokens, since it crashed every worker that sampled it. */
  readonly stopReason_S: Uint8Array;
}

export const stopReasons = { stop: 1, length: 2, poison: 3 } as const;

/** What a sample of one session, in which only the policy speaks, has beside its tokens. */
export function singleTurn(
  responseOffsets_S1: Int32Array,
  session_S: Int32Array,
  version: number,
): Pick<
  Trajectories,
  | 'mask_T'
  | 'version_T'
  | 'segmentOffsets_S1'
  | 'segmentEnds_K'
  | 'segmentKinds_K'
  | 'session_S'
  | 'output_S'
  | 'columns'
> {
  const samples = responseOffsets_S1.length - 1;
  const tokens = at(responseOffsets_S1, -1);
  return {
    mask_T: new Uint8Array(tokens).fill(1),
    version_T: new Int32Array(tokens).fill(version),
    segmentOffsets_S1: Int32Array.from({ length: samples + 1 }, (_, b) => b),
    segmentEnds_K: responseOffsets_S1.slice(1),
    segmentKinds_K: new Uint8Array(samples).fill(segmentKinds.policy),
    session_S,
    output_S: new Int32Array(samples),
    columns: {},
  };
}

/**
 * Joins the parts of one job to the same result as the whole job. The parts are in order of draws, and of samples
 * within a draw; `samplesPerDraw` is the whole job's.
 */
export function joinTrajectories(parts: readonly Trajectories[], samplesPerDraw: number): Trajectories {
  // A part that holds only poison samples has no prompts.
  const prompts = new Map<number, Int32Array>();
  for (const { draw, tokens } of parts.flatMap(promptsOf))
    if ((prompts.get(draw)?.length ?? 0) === 0) prompts.set(draw, tokens);
  const lengths = parts.flatMap(({ responseOffsets_S1 }) => lengthsOf(responseOffsets_S1));
  const integers = (of: (part: Trajectories) => Int32Array) => Int32Array.from(parts.flatMap((part) => [...of(part)]));
  const floats = (of: (part: Trajectories) => Float32Array) =>
    Float32Array.from(parts.flatMap((part) => [...of(part)]));
  const flags = (of: (part: Trajectories) => Uint8Array) => Uint8Array.from(parts.flatMap((part) => [...of(part)]));
  return {
    weightsDigest: at(parts, 0).weightsDigest,
    samplesPerDraw,
    draw_S: integers((part) => part.draw_S),
    row_S: integers((part) => part.row_S),
    promptTokens: Int32Array.from([...prompts.values()].flatMap((tokens) => [...tokens])),
    promptOffsets_G1: offsetsOf([...prompts.values()].map((tokens) => tokens.length)),
    responseTokens_T: integers((part) => part.responseTokens_T),
    responseOffsets_S1: offsetsOf(lengths),
    logProbs_T: floats((part) => part.logProbs_T),
    samplingLogProbs_T: floats((part) => part.samplingLogProbs_T),
    mask_T: flags((part) => part.mask_T),
    version_T: integers((part) => part.version_T),
    segmentOffsets_S1: offsetsOf(parts.flatMap((part) => lengthsOf(part.segmentOffsets_S1))),
    segmentEnds_K: shifted(parts),
    segmentKinds_K: flags((part) => part.segmentKinds_K),
    session_S: integers((part) => part.session_S),
    output_S: integers((part) => part.output_S),
    columns: joinedColumns(parts),
    stopReason_S: flags((part) => part.stopReason_S),
  };
}

const lengthsOf = (offsets: Int32Array): number[] => [...offsets.subarray(1)].map((end, b) => end - at(offsets, b));

/** Ends of segments, counted in the tokens of all parts. */
function shifted(parts: readonly Trajectories[]): Int32Array {
  let before = 0;
  const ends = parts.map((part) => {
    const from = before;
    before += part.responseTokens_T.length;
    return part.segmentEnds_K.map((end) => from + end);
  });
  return Int32Array.from(ends.flatMap((some) => [...some]));
}

/** A sample whose part has no such column has no value: NaN. */
function joinedColumns(parts: readonly Trajectories[]): Record<string, Float32Array> {
  const names = [...new Set(parts.flatMap(({ columns }) => Object.keys(columns)))].sort();
  const values = (name: string) =>
    parts.flatMap(({ columns, draw_S }) => [...(columns[name] ?? new Float32Array(draw_S.length).fill(Number.NaN))]);
  return Object.fromEntries(names.map((name) => [name, Float32Array.from(values(name))]));
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

/** Names of free columns begin with it, so that they cannot be those of other tensors. */
const columnPrefix = 'column.';

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
      mask: u8(t.mask_T),
      version: i32(t.version_T),
      segment_offsets: i32(t.segmentOffsets_S1),
      segment_ends: i32(t.segmentEnds_K),
      segment_kinds: u8(t.segmentKinds_K),
      session: i32(t.session_S),
      output: i32(t.output_S),
      ...Object.fromEntries(Object.entries(t.columns).map(([name, values]) => [columnPrefix + name, f32(values)])),
      stop_reason: u8(t.stopReason_S),
    },
    { format: '2', weights: t.weightsDigest, samples_per_draw: String(t.samplesPerDraw) },
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
    ...sessionsOf(file, where),
    stopReason_S: u8Of(file, 'stop_reason', where),
  };
  checkShapes(t, where);
  return t;
}

/** Trajectories of format 1 have one policy segment per sample, and do not say which version made it. */
function sessionsOf(file: DecodedSafetensors, where: string): ReturnType<typeof singleTurn> {
  if (file.metadata['format'] === undefined) {
    const perDraw = Number(file.metadata['samples_per_draw']);
    const session_S = i32Of(file, 'draw', where).map((_, b) => b % perDraw);
    return singleTurn(i32Of(file, 'response_offsets', where), session_S, -1);
  }
  const columns = [...file.tensors.keys()].filter((name) => name.startsWith(columnPrefix));
  return {
    mask_T: u8Of(file, 'mask', where),
    version_T: i32Of(file, 'version', where),
    segmentOffsets_S1: i32Of(file, 'segment_offsets', where),
    segmentEnds_K: i32Of(file, 'segment_ends', where),
    segmentKinds_K: u8Of(file, 'segment_kinds', where),
    session_S: i32Of(file, 'session', where),
    output_S: i32Of(file, 'output', where),
    columns: Object.fromEntries(columns.map((name) => [name.slice(columnPrefix.length), f32Of(file, name, where)])),
  };
}

function checkShapes(t: Trajectories, where: string): void {
  const samples = t.draw_S.length;
  if (!Number.isInteger(t.samplesPerDraw) || t.samplesPerDraw < 1)
    throw misshapen(where, `samples_per_draw: expected a number of samples, found ${t.samplesPerDraw}`);
  checkLengths(where, samples, {
    row: t.row_S,
    stop_reason: t.stopReason_S,
    session: t.session_S,
    output: t.output_S,
    ...t.columns,
  });
  checkOffsets(where, 'prompt_offsets', t.promptOffsets_G1, samples / t.samplesPerDraw, t.promptTokens.length);
  checkOffsets(where, 'response_offsets', t.responseOffsets_S1, samples, t.responseTokens_T.length);
  checkLengths(where, t.responseTokens_T.length, {
    log_probs: t.logProbs_T,
    sampling_log_probs: t.samplingLogProbs_T,
    mask: t.mask_T,
    version: t.version_T,
  });
  checkOffsets(where, 'segment_offsets', t.segmentOffsets_S1, samples, t.segmentEnds_K.length);
  checkLengths(where, t.segmentEnds_K.length, { segment_kinds: t.segmentKinds_K });
  checkSegments(t, where);
}

/** The segments of a sample follow each other and end with its response. */
function checkSegments(t: Trajectories, where: string): void {
  for (let b = 0; b < t.draw_S.length; b++) {
    let end = at(t.responseOffsets_S1, b);
    for (let k = at(t.segmentOffsets_S1, b); k < at(t.segmentOffsets_S1, b + 1); k++) {
      if (at(t.segmentEnds_K, k) < end)
        throw misshapen(where, `segment_ends: expected at least ${end}, found ${at(t.segmentEnds_K, k)}`);
      end = at(t.segmentEnds_K, k);
    }
    if (end !== at(t.responseOffsets_S1, b + 1))
      throw misshapen(where, `segment_ends: expected ${at(t.responseOffsets_S1, b + 1)} for sample ${b}, found ${end}`);
  }
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
