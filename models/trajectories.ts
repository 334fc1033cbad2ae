/** The tensors of a rollout's trajectories: core/records/FORMAT.md, "Trajectory tensors". */
import { at } from '../core/at.ts';
import type { PauseError } from '../core/errors.ts';
import { offsetsOf } from '../core/offsets.ts';
import { joinedTokenColumns } from '../core/token-columns.ts';
import type { TokenColumns } from '../core/token-columns.ts';
import { checkLengths, checkOffsets, misshapen } from './shape-check.ts';
import { decodeSafetensors, encodeSafetensors } from './safetensors.ts';
import type { DecodedSafetensors, MemoryTensor } from './safetensors.ts';

/** The maker of a segment of a response: the policy, or what it talks to (a tool, a user, a simulator). */
const segmentKinds = { policy: 0, environment: 1 } as const;

/**
 * The samples of some draws, draw by draw. Shapes: the legend in core/rl/ragged.ts; G counts the draws, P the prompts,
 * K the segments of all samples.
 */
export interface Trajectories {
  readonly weightsDigest: string;
  /** The samples of draw g are those from `drawOffsets_G1[g]` to the next offset. */
  readonly drawOffsets_G1: Int32Array;
  readonly draw_S: Int32Array;
  readonly row_S: Int32Array;
  /** Each prompt once. The samples of a draw may have different ones: outputs of a session continue each other. */
  readonly promptTokens: Int32Array;
  readonly promptOffsets_P1: Int32Array;
  readonly prompt_S: Int32Array;
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
  /** Free columns by name, `width` values per response token. */
  readonly tokenColumns: TokenColumns;
  /** 1 stop token or string, 2 length, 3 poison: it has no tokens, since it crashed every worker that sampled it. */
  readonly stopReason_S: Uint8Array;
}

/** Tokens of a sample's prompt. */
export function promptOf(
  { promptTokens, promptOffsets_P1, prompt_S }: Pick<Trajectories, 'promptTokens' | 'promptOffsets_P1' | 'prompt_S'>,
  b: number,
): Int32Array {
  const p = at(prompt_S, b);
  return promptTokens.subarray(at(promptOffsets_P1, p), at(promptOffsets_P1, p + 1));
}

/** The samples of each draw. */
export function groupsOf({ drawOffsets_G1 }: Pick<Trajectories, 'drawOffsets_G1'>): readonly number[][] {
  return Array.from({ length: drawOffsets_G1.length - 1 }, (_, g) => {
    const first = at(drawOffsets_G1, g);
    return Array.from({ length: at(drawOffsets_G1, g + 1) - first }, (_, i) => first + i);
  });
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
  | 'tokenColumns'
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
    tokenColumns: {},
  };
}

/**
 * Joins the parts of one job to the same result as the whole job. The parts are in order of draws, and of samples
 * within a draw.
 */
export function joinTrajectories(parts: readonly Trajectories[]): Trajectories {
  const lengths = parts.flatMap(({ responseOffsets_S1 }) => lengthsOf(responseOffsets_S1));
  const integers = (of: (part: Trajectories) => Int32Array) => Int32Array.from(parts.flatMap((part) => [...of(part)]));
  const floats = (of: (part: Trajectories) => Float32Array) =>
    Float32Array.from(parts.flatMap((part) => [...of(part)]));
  const flags = (of: (part: Trajectories) => Uint8Array) => Uint8Array.from(parts.flatMap((part) => [...of(part)]));
  const draw_S = integers((part) => part.draw_S);
  return {
    weightsDigest: at(parts, 0).weightsDigest,
    drawOffsets_G1: runsOf(draw_S),
    draw_S,
    row_S: integers((part) => part.row_S),
    ...joinedPrompts(parts),
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
    tokenColumns: joinedTokenColumns(
      parts.map(({ tokenColumns: columns, responseTokens_T }) => ({ columns, tokens: responseTokens_T.length })),
    ),
    stopReason_S: flags((part) => part.stopReason_S),
  };
}

/** Offsets of neighbours that are equal. */
function runsOf(values: Int32Array): Int32Array {
  const starts = [...values].flatMap((value, b) => (b > 0 && value === at(values, b - 1) ? [] : [b]));
  return Int32Array.from([...starts, values.length]);
}

/** A sample that crashed its workers has no prompt in its part; it gets that of another sample of its draw. */
function joinedPrompts(
  parts: readonly Trajectories[],
): Pick<Trajectories, 'promptTokens' | 'promptOffsets_P1' | 'prompt_S'> {
  const all = parts.flatMap((part) => [...part.draw_S].map((draw, b) => ({ draw, tokens: promptOf(part, b) })));
  const ofDraw = new Map<number, Int32Array>();
  for (const { draw, tokens } of all) if (tokens.length > 0 && !ofDraw.has(draw)) ofDraw.set(draw, tokens);
  const numbers = new Map<string, number>();
  const prompts: Int32Array[] = [];
  const prompt_S = all.map(({ draw, tokens }) => {
    const own = tokens.length > 0 ? tokens : (ofDraw.get(draw) ?? tokens);
    const name = `${draw}: ${own.join(' ')}`;
    const known = numbers.get(name) ?? prompts.push(own) - 1;
    numbers.set(name, known);
    return known;
  });
  return {
    promptTokens: Int32Array.from(prompts.flatMap((tokens) => [...tokens])),
    promptOffsets_P1: offsetsOf(prompts.map(({ length }) => length)),
    prompt_S: Int32Array.from(prompt_S),
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

/** Names of free columns begin with it, so that they cannot be those of other tensors. */
const columnPrefix = 'column.';
const tokenColumnPrefix = 'token.';

export function encodeTrajectories(t: Trajectories): Uint8Array {
  return encodeSafetensors(
    {
      draw_offsets: i32(t.drawOffsets_G1),
      draw: i32(t.draw_S),
      row: i32(t.row_S),
      prompt_tokens: i32(t.promptTokens),
      prompt_offsets: i32(t.promptOffsets_P1),
      prompt: i32(t.prompt_S),
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
      ...encodeTokenColumns(t.tokenColumns),
      stop_reason: u8(t.stopReason_S),
    },
    { format: '3', weights: t.weightsDigest },
  );
}

/** Tensors [T, width] by name: I32 or F32. */
export function encodeTokenColumns(columns: TokenColumns): Record<string, MemoryTensor> {
  const tensors = Object.entries(columns).map(([name, { data, width }]): [string, MemoryTensor] => {
    const shape = [data.length / width, width];
    const tensor: MemoryTensor =
      data instanceof Int32Array ? { dtype: 'I32', data, shape } : { dtype: 'F32', data, shape };
    return [tokenColumnPrefix + name, tensor];
  });
  return Object.fromEntries(tensors);
}

export function decodeTokenColumns(file: DecodedSafetensors, where: string): TokenColumns {
  const found = [...file.tensors].filter(([name]) => name.startsWith(tokenColumnPrefix));
  return Object.fromEntries(
    found.map(([name, { dtype, data, shape }]) => {
      const [, width = 0] = shape;
      if (shape.length !== 2 || width < 1 || (dtype !== 'I32' && dtype !== 'F32'))
        throw misshapen(
          where,
          `tensor ${name}: expected I32 or F32 of two dimensions, found ${dtype} of ${shape.length}`,
        );
      return [name.slice(tokenColumnPrefix.length), { data, width }];
    }),
  );
}

export function decodeTrajectories(bytes: Uint8Array, where: string): Trajectories {
  const file = decodeSafetensors(bytes, where);
  const t: Trajectories = {
    weightsDigest: file.metadata['weights'] ?? '',
    draw_S: i32Of(file, 'draw', where),
    row_S: i32Of(file, 'row', where),
    promptTokens: i32Of(file, 'prompt_tokens', where),
    promptOffsets_P1: i32Of(file, 'prompt_offsets', where),
    ...groupsIn(file, where),
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

/** Before format 3 every draw had as many samples, all with its prompt. */
function groupsIn(file: DecodedSafetensors, where: string): Pick<Trajectories, 'drawOffsets_G1' | 'prompt_S'> {
  if (file.metadata['format'] === '3')
    return { drawOffsets_G1: i32Of(file, 'draw_offsets', where), prompt_S: i32Of(file, 'prompt', where) };
  const perDraw = Number(file.metadata['samples_per_draw']);
  const samples = i32Of(file, 'draw', where).length;
  if (!Number.isInteger(perDraw) || perDraw < 1 || samples % perDraw !== 0)
    throw misshapen(where, `samples_per_draw: expected a divisor of ${samples}, found ${perDraw}`);
  return {
    drawOffsets_G1: Int32Array.from({ length: samples / perDraw + 1 }, (_, g) => g * perDraw),
    prompt_S: Int32Array.from({ length: samples }, (_, b) => Math.floor(b / perDraw)),
  };
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
    tokenColumns: decodeTokenColumns(file, where),
  };
}

function checkShapes(t: Trajectories, where: string): void {
  const samples = t.draw_S.length;
  checkLengths(where, samples, {
    row: t.row_S,
    prompt: t.prompt_S,
    stop_reason: t.stopReason_S,
    session: t.session_S,
    output: t.output_S,
    ...t.columns,
  });
  checkOffsets(where, 'draw_offsets', t.drawOffsets_G1, t.drawOffsets_G1.length - 1, samples);
  const prompts = t.promptOffsets_P1.length - 1;
  checkOffsets(where, 'prompt_offsets', t.promptOffsets_P1, prompts, t.promptTokens.length);
  const beyond = t.prompt_S.find((p) => p < 0 || p >= prompts);
  if (beyond !== undefined) throw misshapen(where, `prompt: expected a number below ${prompts}, found ${beyond}`);
  checkOffsets(where, 'response_offsets', t.responseOffsets_S1, samples, t.responseTokens_T.length);
  checkLengths(where, t.responseTokens_T.length, {
    log_probs: t.logProbs_T,
    sampling_log_probs: t.samplingLogProbs_T,
    mask: t.mask_T,
    version: t.version_T,
  });
  for (const [name, { data, width }] of Object.entries(t.tokenColumns))
    checkLengths(where, width * t.responseTokens_T.length, { [name]: data });
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
